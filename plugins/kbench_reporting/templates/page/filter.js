// Filtering: every word must occur in the text. An empty result says so.
const wanted = input => {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  return text => words.every(word => text.toLowerCase().includes(word));
};
const sayEmpty = table => {
  const scroll = table.closest(".scroll");
  let note = scroll.nextElementSibling;
  if (!note || !note.classList.contains("empty")) {
    note = document.createElement("p");
    note.className = "empty"; note.setAttribute("role", "status");
    scroll.after(note);
  }
  const cells = [...table.tHead.rows[0].cells];
  const rows = [...table.tBodies[0].rows];
  const none = rows.every(row => row.hidden) || cells.slice(1).every(cell => cell.hidden);
  note.textContent = none ? "Nothing fits this filter." : "";
};
const filters = new Map();  // table to the tests that its rows must pass
const filterRows = table => {
  const tests = [...filters.get(table).values()];
  for (const row of table.tBodies[0].rows) row.hidden = !tests.every(fits => fits(row));
  sayEmpty(table); changed();
};
const addFilter = (table, key, test) => {
  if (!filters.has(table)) filters.set(table, new Map());
  filters.get(table).set(key, test);
};
for (const input of document.querySelectorAll("input[data-rows]")) {
  const table = document.getElementById(input.dataset.rows);
  const columns = (input.dataset.text || "0").split(" ").map(Number);
  input.addEventListener("input", () => {
    const fits = wanted(input);
    addFilter(table, input.id, row => fits(columns.map(i => row.cells[i].textContent).join(" ")));
    filterRows(table);
  });
}
for (const input of document.querySelectorAll("input[data-columns]")) {
  const table = document.getElementById(input.dataset.columns), head = table.tHead.rows[0];
  input.addEventListener("input", () => {
    const fits = wanted(input);
    const hidden = [...head.cells].map((cell, i) => i > 0 && !fits(cell.innerText || cell.textContent));
    for (const row of table.rows)
      [...row.cells].forEach((cell, i) => { cell.hidden = hidden[i]; });
    sayEmpty(table); changed();
  });
}
