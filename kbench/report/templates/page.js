"use strict";
// Sorting: a button in each heading; numbers by data-v, other cells by text; empty cells come last.
const compare = up => (a, b) => {
  const none = v => v === null || v === "";
  if (none(a) || none(b)) return none(a) - none(b);
  const numbers = typeof a !== "string" && typeof b !== "string";
  return (up ? 1 : -1) * (numbers ? a - b :
    String(a).localeCompare(String(b), undefined, {numeric: true}));
};
const sortable = table => {
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button"; button.className = "sort";
    button.append(...head.childNodes); head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      if (table.sortRows) return table.sortRows(column, up);
      const key = row => {
        const cell = row.cells[column], v = cell.dataset.v;
        return v === undefined ? cell.textContent.trim() : v === "" ? null : Number(v);
      };
      const body = table.tBodies[0], order = compare(up);
      const rows = [...body.rows].map(row => [key(row), row]);
      rows.sort(([a], [b]) => order(a, b));
      body.append(...rows.map(([, row]) => row));
    });
  });
};
for (const table of document.querySelectorAll("table.sortable")) sortable(table);
// Folded tables are built when they are first opened.
const unfold = details => {
  for (const template of details.querySelectorAll("template")) {
    template.replaceWith(template.content);
    for (const table of details.querySelectorAll("table.sortable")) sortable(table);
  }
};
for (const details of document.querySelectorAll("details.later"))
  details.addEventListener("toggle", () => unfold(details));
// Filtering: every word must occur in the text.
const wanted = input => {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  return text => words.every(word => text.toLowerCase().includes(word));
};
for (const input of document.querySelectorAll("input[data-rows]")) {
  const body = document.getElementById(input.dataset.rows).tBodies[0];
  input.addEventListener("input", () => {
    const fits = wanted(input);
    for (const row of body.rows) row.hidden = !fits(row.cells[0].textContent);
  });
}
for (const input of document.querySelectorAll("input[data-columns]")) {
  const table = document.getElementById(input.dataset.columns), head = table.tHead.rows[0];
  input.addEventListener("input", () => {
    const fits = wanted(input);
    const hidden = [...head.cells].map((cell, i) => i > 0 && !fits(cell.innerText));
    for (const row of table.rows)
      [...row.cells].forEach((cell, i) => { cell.hidden = hidden[i]; });
  });
}
// Numbers of any size, as `kbench.report.text.of_any_size` writes them.
const ofAnySize = v => {
  const size = Math.abs(v);
  if (size === 0 || (size >= 0.001 && size < 10)) return v.toFixed(4);
  if (size >= 1e9 || size < 1e-4) return v.toExponential(3).replace(/e([+-])(\d)$/, "e$10$2");
  return v.toFixed(Math.max(0, (size >= 10 ? 4 : 3) - Math.floor(Math.log10(size))));
};
// All cells: rows are built when they are first shown, a thousand at a time.
(() => {
  const details = document.getElementById("all-cells"), table = document.getElementById("all");
  const input = document.getElementById("all-filter"), more = document.getElementById("all-more");
  const count = document.getElementById("all-count"), names =
    [...table.tHead.rows[0].cells].map(cell => cell.textContent);
  const anySize = new Set(JSON.parse(table.dataset.anySize));
  let rows = null, found = [], drawn = 0;
  const shown = (name, v) => v === null ? "" : typeof v === "boolean" ? (v ? "yes" : "no") :
    typeof v !== "number" ? String(v) : name.endsWith("_s") ? String(Number(v.toPrecision(4))) :
    name.endsWith("_mb") ? v.toFixed(1) : Number.isInteger(v) && /^n_/.test(name) ? String(v) :
    /^n_/.test(name) ? String(Number(v.toPrecision(6))) :
    anySize.has(name) ? ofAnySize(v) : v.toFixed(4);
  const draw = upTo => {
    const made = document.createDocumentFragment();
    for (; drawn < Math.min(upTo, found.length); drawn++) {
      const row = document.createElement("tr");
      found[drawn].forEach((v, i) => {
        const cell = row.insertCell();
        cell.textContent = shown(names[i], v);
        if (i > 3) { cell.className = "n"; cell.dataset.v = v === null ? "" : Number(v); }
      });
      made.append(row);
    }
    table.tBodies[0].append(made);
    more.hidden = drawn >= found.length;
  };
  const open = upTo => {
    if (!rows) {
      rows = JSON.parse(document.getElementById("cells-data").textContent);
      found = rows;
    }
    draw(upTo);
  };
  table.sortRows = (column, up) => {  // all rows, not only the drawn ones
    const order = compare(up);
    found = found.map(row => [row[column], row]).sort((a, b) => order(a[0], b[0])).map(e => e[1]);
    table.tBodies[0].replaceChildren(); drawn = 0; draw(1000);
  };
  input.addEventListener("input", () => {
    const fits = wanted(input);
    found = rows.filter(row => fits(row.slice(0, 4).join(" ")));
    table.tBodies[0].replaceChildren(); drawn = 0; draw(1000);
    count.textContent = found.length + " of " + rows.length + " cells";
  });
  details.addEventListener("toggle", () => { if (details.open && !drawn) open(1000); });
  more.addEventListener("click", () => draw(drawn + 1000));
  addEventListener("beforeprint", () => { details.open = true; open(2000); });
})();
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
    const measures = [...new Set(curves.map(curve => curve[2]))];
    const better = [...new Set(curves.map(curve => curve[3]))];
    // lower values are better of every curve: they stand higher, as in the other charts
    const isTurned = better.length === 1 && better[0] === "lower";
    const label = measures.join(", ") + (isScaled ? " over the best" : "") + (isTurned ? " (lower is better)" : "");
    document.getElementById("search-measure").firstElementChild.textContent = "mean " + measures.join(", ");
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
    svg.append(make("title", {}, label + " of inner folds against " + parameters.value));
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
addEventListener("beforeprint", () =>
  document.querySelectorAll("details.print").forEach(d => { unfold(d); d.open = true; }));

// A click on a method highlights it in every chart and table; another click, or Escape, ends it.
(() => {
  let lit = null;
  const of = element => element.dataset.m.split(" ");
  const show = () => {
    document.body.classList.toggle("lit", lit !== null);
    for (const element of document.querySelectorAll("[data-m]"))
      element.classList.toggle("lit", lit !== null && of(element).includes(lit));
    const main = document.getElementById("main");
    for (const row of main ? main.tBodies[0].rows : [])
      [...row.cells].forEach((cell, i) => cell.classList.toggle("lit", i > 0 && String(i - 1) === lit));
  };
  document.addEventListener("click", event => {
    if (event.target.closest("button, a, summary, select, input")) return;
    const element = event.target.closest("svg [data-m], tr[data-m]");
    if (!element) return;
    const numbers = of(element), next = numbers[(numbers.indexOf(lit) + 1) % (numbers.length + 1)];
    lit = next === undefined || (numbers.length === 1 && lit === numbers[0]) ? null : next;
    show();
  });
  addEventListener("keydown", event => { if (event.key === "Escape") { lit = null; show(); } });
  // tables that are unfolded later
  document.addEventListener("toggle", show, true);
})();
// The numbers of a point at the pointer, at once.
(() => {
  const tip = document.createElement("div");
  tip.className = "tip"; tip.hidden = true; tip.setAttribute("aria-hidden", "true");
  document.body.append(tip);
  document.addEventListener("pointerover", event => {
    const shape = event.target.closest("svg g");
    const title = shape && [...shape.children].find(child => child.tagName === "title");
    tip.hidden = !title;
    if (!title) return;
    tip.textContent = title.textContent;
    const {clientX: x, clientY: y} = event, {offsetWidth: wide, offsetHeight: tall} = tip;
    tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - wide - 6)) + "px";
    tip.style.top = (y + 18 + tall > innerHeight ? y - tall - 10 : y + 18) + "px";
  });
})();
// Shares as logarithmic errors.
(() => {
  const box = document.getElementById("as-error");
  if (!box) return;
  const draw = () => {
    for (const error of document.querySelectorAll("figure > .error")) {
      error.hidden = !box.checked;
      error.parentElement.querySelector(".plain").hidden = box.checked;
    }
  };
  box.addEventListener("change", draw); draw();
})();
// The numbers of each chart as a CSV file.
for (const details of document.querySelectorAll("details.data")) {
  const button = document.createElement("button");
  button.type = "button"; button.className = "csv"; button.textContent = "CSV";
  const name = details.parentElement.querySelector("figcaption");
  button.setAttribute("aria-label", "CSV of: " + (name ? name.textContent : details.dataset.name));
  details.before(button);
  button.addEventListener("click", () => {
    unfold(details);
    // a text that a spreadsheet would run as a formula is quoted
    const written = text => {
      const safe = /^\s*[=+\-@|]/.test(text) && !/^[+-]?[\d.]/.test(text) ? "'" + text : text;
      return /[",\n]/.test(safe) ? '"' + safe.replaceAll('"', '""') + '"' : safe;
    };
    const value = cell => cell.dataset.v !== undefined ? cell.dataset.v :
      cell.textContent.replace(/\s*[↕↑↓]$/, "").trim();
    const lines = [...details.querySelector("table").rows]
      .map(row => [...row.cells].map(value).map(written).join(","));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], {type: "text/csv"}));
    link.download = details.dataset.name + ".csv";
    link.click();
    URL.revokeObjectURL(link.href);
  });
}
