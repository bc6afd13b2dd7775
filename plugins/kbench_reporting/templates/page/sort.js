// What the reader chose is kept in the address of the page (state.js).
const changed = () => document.dispatchEvent(new Event("kbench:changed"));
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
      changed();
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
