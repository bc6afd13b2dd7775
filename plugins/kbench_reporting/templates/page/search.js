// Results of the search: a line per dataset.
(() => {
  const holder = document.getElementById("curves");
  if (!holder) return;
  const data = JSON.parse(holder.textContent), body = document.getElementById("search-body");
  const methods = document.getElementById("search-method");
  const parameters = document.getElementById("search-parameter");
  data.methods.forEach(([name], i) => methods.add(new Option(name, i)));
  const make = (tag, attributes, text) => {
    const found = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const name in attributes) found.setAttribute(name, attributes[name]);
    if (text !== undefined) found.textContent = text;
    return found;
  };
  const written = v => String(Number(v.toPrecision(3)));
  const draw = () => {
    const [method, by] = data.methods[methods.value], measured = by[parameters.value];
    // errors in the units of each target are drawn as multiples of the best of their curve
    const isScaled = measured.every(([, found, , , inUnits]) => inUnits && found.every(p => p[1] > 0));
    const curves = measured.map(([number, found, ...others]) => {
      const unit = isScaled ? Math.min(...found.map(p => p[1])) : 1;
      return [number, found.map(([v, mean, error, ...more]) =>
        [v, mean / unit, error === null ? null : error / unit, ...more]), ...others];
    });
    document.getElementById("search-names").textContent = `${method}: ${parameters.value}`;
    const points = curves.flatMap(([, found]) => found);
    const metrics = [...new Set(curves.map(curve => curve[2]))];
    const better = [...new Set(curves.map(curve => curve[3]))];
    // lower values are better of every curve: they stand higher, as in the other charts
    const isTurned = better.length === 1 && better[0] === "lower";
    const label = metrics.join(", ") + (isScaled ? " over the best" : "") + (isTurned ? " (lower is better)" : "");
    document.getElementById("search-metric").firstElementChild.textContent = "validation " + metrics.join(", ");
    const xs = [...new Set(points.map(p => p[0]))].sort((a, b) => a - b);
    const log = xs[0] > 0 && xs[xs.length - 1] > 8 * xs[0];
    const scale = v => log ? Math.log10(v) : v;
    const ends = [scale(xs[0]), scale(xs[xs.length - 1])];
    const low = Math.min(...points.map(p => p[1] - (p[2] || 0)));
    const high = Math.max(...points.map(p => p[1] + (p[2] || 0)));
    const means = points.map(p => p[1]);
    // errors of datasets with different units, or of very different size
    const logY = Math.min(...means) > 0 && Math.max(...means) >= 10 * Math.min(...means);
    let marks, ends_y, place;
    if (logY) {
      place = v => Math.log10(Math.max(v, Math.min(...means) / 2));
      ends_y = [place(Math.min(...means)) - 0.1, place(Math.max(...means)) + 0.1];
      const all = [[1, 2, 5], [1, 3], [1]].map(steps => {
        const found = [];
        for (let e = Math.floor(ends_y[0]); e <= Math.ceil(ends_y[1]); e++)
          for (const s of steps) found.push(s * 10 ** e);
        return found.filter(v => Math.log10(v) >= ends_y[0] && Math.log10(v) <= ends_y[1]);
      });
      const few = all.find(found => found.length <= 7) || all[2];
      marks = few.filter((v, i) => i % Math.ceil(few.length / 7) === 0).map(v => [v, written(v)]);
    } else {
      const size = Math.max(Math.abs(low), Math.abs(high)) || 1;
      const spread = Math.max(high - low, Math.min(0.01, 0.1 * size));
      const unit = 10 ** Math.floor(Math.log10(spread / 6));
      const step = [1, 2, 5, 10].map(s => s * unit).find(s => spread / s <= 6);
      const bottom = low >= 0 ? Math.max(0, Math.floor(low / step)) : Math.floor(low / step);
      const top = Math.max(bottom + 1, Math.ceil(high / step));
      const digits = Math.max(step < 1 ? 2 : 0, -Math.floor(Math.log10(step) + 1e-9));
      place = v => v;
      ends_y = [bottom * step, top * step];
      marks = [];
      for (let i = bottom; i <= top; i++)
        marks.push([i * step, digits > 6 ? written(i * step) : (i * step).toFixed(digits)]);
    }
    const x = v => 66 + 440 * (ends[1] > ends[0] ? (scale(v) - ends[0]) / (ends[1] - ends[0]) : .5);
    const y = v => {
      const share = (place(v) - ends_y[0]) / (ends_y[1] - ends_y[0]);
      return 16 + 316 * Math.min(1, Math.max(0, isTurned ? share : 1 - share));
    };
    const svg = make("svg", {viewBox: "0 0 560 380", width: 560, height: 380, class: "scatter",
      role: "img"});
    svg.append(make("title", {}, "validation " + label + " against " + parameters.value));
    for (const [v, text] of marks) {
      svg.append(make("path", {d: `M66 ${y(v)}H542`, class: "grid"}));
      svg.append(make("text", {x: 58, y: y(v) + 4, class: "tick", "text-anchor": "end"}, text));
    }
    svg.append(make("text", {transform: "translate(13 174) rotate(-90)", class: "tick",
      "text-anchor": "middle"}, label));
    let last = -Infinity;
    for (const v of xs) {
      svg.append(make("path", {d: `M${x(v)} 16V332`, class: "grid"}));
      if (x(v) - last < 44) continue;
      last = x(v);
      svg.append(make("text", {x: last, y: 350, class: "tick", "text-anchor": "middle"}, written(v)));
    }
    svg.append(make("text", {x: 304, y: 372, class: "tick", "text-anchor": "middle"},
      parameters.value));
    const taken = [];
    for (const [number, found] of curves) {
      const line = make("g", {class: "line c" + number % 8});
      line.append(make("title", {}, data.datasets[number]));
      line.append(make("path", {class: "run", d: "M" + found.map(p => x(p[0]) + " " + y(p[1])).join("L")}));
      for (const [v, mean, error, , edge] of found) {
        if (error) line.append(make("path", {class: "bar",
          d: `M${x(v)} ${y(mean - error)}V${y(mean + error)}`}));
        line.append(make("circle", {cx: x(v), cy: y(mean), r: 2.6}));
        if (edge) line.append(make("circle", {cx: x(v), cy: y(mean), r: 6, class: "ring"}));
      }
      const end = found[found.length - 1];
      for (let k = 0; k < 60; k++) {  // nearest free place, or no label
        const at = y(end[1]) + (k % 2 ? 11 : -11) * Math.ceil(k / 2);
        if (at < 16 || at > 332 || taken.some(other => Math.abs(other - at) < 11)) continue;
        taken.push(at);
        line.append(make("text", {x: x(end[0]) + 9, y: at + 4, class: "end"}, number + 1));
        break;
      }
      svg.append(line);
    }
    document.getElementById("search-chart").replaceChildren(svg);
    body.replaceChildren(...measured.flatMap(([number, found]) => found.map(p => {
      const row = document.createElement("tr");
      row.insertCell().textContent = (number + 1) + " " + data.datasets[number];
      for (const [text, v] of [[written(p[0]), p[0]], [ofAnySize(p[1]), p[1]],
          [p[2] === null ? "" : ofAnySize(p[2]), p[2] === null ? "" : p[2]], [p[3], p[3]]]) {
        const cell = row.insertCell();
        cell.textContent = text; cell.className = "n"; cell.dataset.v = v;
      }
      row.insertCell().textContent = p[4] ? "yes" : "";
      return row;
    })));
  };
  const choose = () => {
    const names = Object.keys(data.methods[methods.value][1]), before = parameters.value;
    parameters.replaceChildren(...names.map(name => new Option(name)));
    if (names.includes(before)) parameters.value = before;
    draw();
  };
  methods.addEventListener("change", choose); parameters.addEventListener("change", draw); choose();
})();
