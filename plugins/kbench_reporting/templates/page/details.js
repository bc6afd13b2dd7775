// A part for each dataset and each method; its table is drawn when it is unfolded.
(() => {
  const draw = (holder, rows, isDataset) => {
    const used = cellNames.map((name, i) => i).filter(i => i !== (isDataset ? 0 : -1) &&
      (isDataset || (i !== 1 && i !== 2)) && rows.some(row => row[i] !== null));
    const scroll = document.createElement("div"), table = document.createElement("table");
    scroll.className = "scroll"; scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", holder.firstElementChild.textContent);
    table.className = "sortable";
    table.dataset.name = isDataset ? "dataset" : "method";
    const head = table.createTHead().insertRow(), body = table.createTBody();
    for (const i of used) {
      const cell = document.createElement("th");
      cell.scope = "col"; cell.textContent = cellNames[i]; if (i > 3) cell.className = "n";
      head.append(cell);
    }
    for (const row of rows) {
      const line = body.insertRow();
      for (const i of used) {
        const cell = line.insertCell(), v = row[i];
        cell.textContent = writtenCell(cellNames[i], v);
        if (i > 3) { cell.className = "n"; cell.dataset.v = v === null ? "" : Number(v); }
      }
    }
    scroll.append(table); holder.append(scroll); sortable(table); addTools(scroll);
  };
  const group = (id, key, isDataset) => {
    const outer = document.getElementById(id), box = outer.querySelector("div");
    outer.addEventListener("toggle", () => {
      if (!outer.open || box.childElementCount) return;
      const by = new Map();
      for (const row of readCells()) {
        if (!by.has(key(row))) by.set(key(row), []);
        by.get(key(row)).push(row);
      }
      for (const [name, rows] of by) {
        const inner = document.createElement("details"), summary = document.createElement("summary");
        summary.textContent = name; inner.append(summary); box.append(inner);
        inner.addEventListener("toggle", () => {
          if (inner.open && inner.childElementCount === 1) draw(inner, rows, isDataset);
        });
      }
    });
  };
  group("by-dataset", row => row[0], true);
  group("by-method", row => row[1] + " + " + row[2], false);
})();
