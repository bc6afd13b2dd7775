let cellNames = [], writtenCell = String;
const readCells = () => JSON.parse(document.getElementById("cells-data").textContent);
// All cells: rows are built when they are first shown, a thousand at a time.
(() => {
  const details = document.getElementById("all-cells"), table = document.getElementById("all");
  const input = document.getElementById("all-filter"), more = document.getElementById("all-more");
  const count = document.getElementById("all-count"), names =
    [...table.tHead.rows[0].cells].map(cell => cell.textContent);
  const anySize = new Set(JSON.parse(table.dataset.anySize));
  let rows = null, found = [], drawn = 0;
  cellNames = names;
  const shown = writtenCell = (name, v) => v === null ? "" : typeof v === "boolean" ? (v ? "yes" : "no") :
    typeof v !== "number" ? String(v) : name.endsWith("_s") ? String(Number(v.toPrecision(4))) :
    name.endsWith("_mib") ? v.toFixed(1) : Number.isInteger(v) && /^n_/.test(name) ? String(v) :
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
      rows = readCells();
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
    open(0);
    const fits = wanted(input);
    found = rows.filter(row => fits(row.slice(0, 4).join(" ")));
    table.tBodies[0].replaceChildren(); drawn = 0; draw(1000);
    sayEmpty(table); changed();
    count.textContent = found.length + " of " + rows.length + " cells";
  });
  details.addEventListener("toggle", () => { if (details.open && !drawn) open(1000); });
  more.addEventListener("click", () => draw(drawn + 1000));
  // many cells would fill dozens of sheets
  addEventListener("beforeprint", () => {
    if (readCells().length <= 60) { details.open = true; open(60); }
  });
})();
