// The leaderboard: columns and families to choose.
(() => {
  const table = document.getElementById("leaderboard");
  const heads = [...table.tHead.rows[0].cells];
  const show = (column, shown) => {
    for (const row of table.rows) row.cells[column].hidden = !shown;
  };
  const box = document.querySelector("#leaders-columns .controls");
  heads.forEach((head, column) => {
    if (column < 3) return;  // what names a method stays
    const label = document.createElement("label"), input = document.createElement("input");
    label.className = "check"; input.type = "checkbox"; input.id = "column-" + head.dataset.col;
    input.checked = !("wide" in head.dataset); input.defaultChecked = input.checked;
    label.append(input, head.textContent);
    input.addEventListener("change", () => { show(column, input.checked); changed(); });
    if (!input.checked) show(column, false);
    box.append(label);
  });
  const family = document.getElementById("leaders-family");
  const place = heads.findIndex(head => head.dataset.col === "family");
  if (place < 0) { family.parentElement.remove(); return; }  // all methods are of one family
  const of = row => row.cells[place].textContent;
  for (const name of new Set([...table.tBodies[0].rows].map(of))) family.add(new Option(name, name));
  family.addEventListener("change", () => {
    addFilter(table, "family", row => !family.value || of(row) === family.value);
    filterRows(table);
  });
})();
