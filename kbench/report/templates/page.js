"use strict";
// Sorting: a button in each heading; numbers by data-v, else by the text.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button"; button.className = "sort";
    button.append(...head.childNodes); head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach(each => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = row => {
        const cell = row.cells[column], v = cell.dataset.v;
        return v === undefined ? cell.textContent.trim() : v === "" ? null : Number(v);
      };
      const body = table.tBodies[0];
      const rows = [...body.rows].map(row => [key(row), row]);
      rows.sort(([a], [b]) => a === null ? (b === null ? 0 : 1) : b === null ? -1 :
        (up ? 1 : -1) * (typeof a === "number" && typeof b === "number" ? a - b :
          String(a).localeCompare(String(b), undefined, {numeric: true})));
      body.append(...rows.map(([, row]) => row));
    });
  });
}
// Filtering: every word must occur in the row.
for (const input of document.querySelectorAll("input[data-filters]")) {
  const body = document.getElementById(input.dataset.filters).tBodies[0];
  const count = document.getElementById(input.dataset.filters + "-count");
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of body.rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every(word => text.includes(word));
      shown += !row.hidden;
    }
    count.textContent = shown + " of " + body.rows.length + " cells";
  });
}
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
    if (n < 2) return {d: a[2] - b[2], wide: null, n};
    const mean = d.reduce((sum, x) => sum + x, 0) / n;
    const variance = d.reduce((sum, x) => sum + (x - mean) ** 2, 0) / (n - 1);
    return {d: mean, wide: data.t[n] * Math.sqrt(variance * (1 / n + a[3])), n};
  };
  const sign = x => Math.abs(x) < 5e-5 ? "0.0000" : (x < 0 ? "−" : "+") + Math.abs(x).toFixed(4);
  const draw = () => {
    const found = data.datasets.map((name, i) =>
      [name, cells.get(i + " " + first.value), cells.get(i + " " + second.value)])
      .filter(([, a, b]) => a && b).map(([name, a, b]) => ({name, a, b, ...compared(a, b)}));
    const most = Math.max(1e-9, ...found.map(each => Math.abs(each.d)));
    body.replaceChildren(...found.map(each => {
      const row = document.createElement("tr");
      const put = (text, kind, v) => {
        const cell = row.insertCell(); cell.textContent = text; cell.className = kind;
        if (v !== undefined) cell.dataset.v = v;
        return cell;
      };
      put(each.name, "name");
      put(each.a[2].toFixed(4), "n", each.a[2]);
      put(each.b[2].toFixed(4), "n", each.b[2]);
      put(sign(each.d), "n", each.d);
      put(each.wide === null ? "" : sign(each.d - each.wide) + " to " + sign(each.d + each.wide), "n");
      put(each.wide === null ? "not paired" : Math.abs(each.d) <= each.wide + 1e-12 ? "not told apart" :
        each.d > 0 ? "first is better" : "second is better", "verdict");
      const bar = document.createElement("i"), size = 50 * Math.abs(each.d) / most;
      bar.style.width = size + "%"; bar.style.left = (each.d < 0 ? 50 - size : 50) + "%";
      const cell = put("", "diff screen", each.d); cell.append(bar);
      return row;
    }));
  };
  first.addEventListener("change", draw); second.addEventListener("change", draw); draw();
})();
addEventListener("beforeprint", () =>
  document.querySelectorAll("details.print").forEach(each => { each.open = true; }));
