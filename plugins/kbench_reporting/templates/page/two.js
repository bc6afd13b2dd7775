// Two methods, dataset by dataset, over the splits that both have.
(() => {
  const body = document.getElementById("two-body");
  if (!body) return;
  const data = JSON.parse(document.getElementById("data").textContent);
  const first = document.getElementById("two-a"), second = document.getElementById("two-b");
  for (const select of [first, second])
    data.methods.forEach((name, i) => select.add(new Option(name, i)));
  second.selectedIndex = Math.min(1, data.methods.length - 1);
  const cells = new Map(data.cells.map(cell => [cell[0] + " " + cell[1], cell]));
  const compared = (a, b) => {
    const d = Object.keys(a[4]).filter(key => key in b[4]).map(key => a[4][key] - b[4][key]);
    const n = d.length;
    const sizes = [...Object.values(a[4]), ...Object.values(b[4])].map(Math.abs);
    const unit = data.in_units ? Math.max(...sizes) || 1 : 1;
    if (!n) return {d: a[2] - b[2], wide: null, why: "not paired"};
    if (n < 2) return {d: d[0], wide: null, why: "one common split: no test"};
    const mean = d.reduce((sum, x) => sum + x, 0) / n;
    if (Math.max(...d) - Math.min(...d) < data.equal * unit)
      return {d: mean, wide: null, why: data.no_test};
    const variance = d.reduce((sum, x) => sum + (x - mean) ** 2, 0) / (n - 1);
    return {d: mean, unit, wide: data.t[n] * Math.sqrt(variance * (1 / n + a[3]))};
  };
  const written = data.any_size ? ofAnySize : x => x.toFixed(4);
  const sign = x => Number(written(x)) === 0 ? written(0) : (x < 0 ? "−" : "+") + written(Math.abs(x));
  const draw = () => {
    const pairs = data.datasets.map((name, i) =>
      [name, cells.get(i + " " + first.value), cells.get(i + " " + second.value)])
      .filter(([, a, b]) => a && b).map(([name, a, b]) => ({name, a, b, ...compared(a, b)}));
    document.getElementById("two-names").textContent =
      `first: ${data.methods[first.value]}; second: ${data.methods[second.value]}`;
    // bars of different units are not compared: each is a share of its values
    const size = pair => Math.abs(pair.d) / (data.in_units ?
      Math.max(Math.abs(pair.a[2]), Math.abs(pair.b[2])) || 1 : 1);
    const most = Math.max(1e-9, ...pairs.map(size));
    body.replaceChildren(...pairs.map(pair => {
      const row = document.createElement("tr");
      const put = (text, kind, v) => {
        const cell = row.insertCell(); cell.textContent = text; cell.className = kind;
        if (v !== undefined) cell.dataset.v = v;
        return cell;
      };
      put(pair.name, "name");
      put(written(pair.a[2]), "n", pair.a[2]);
      put(written(pair.b[2]), "n", pair.b[2]);
      put(sign(pair.d), "n", pair.d);
      put(pair.wide === null ? "" : sign(pair.d - pair.wide) + " to " + sign(pair.d + pair.wide), "n");
      put(pair.wide === null ? pair.why :
        Math.abs(pair.d) <= pair.wide + 1e-12 * pair.unit ? "no significant difference" :
        pair.d * data.sign > 0 ? "first is better" : "second is better", "verdict");
      const bar = document.createElement("i"), half = 50 * size(pair) / most;
      bar.style.width = half + "%"; bar.style.left = (pair.d < 0 ? 50 - half : 50) + "%";
      const cell = put("", "diff screen", pair.d); cell.append(bar);
      return row;
    }));
  };
  first.addEventListener("change", draw); second.addEventListener("change", draw); draw();
})();
