"use strict";
// Rows that fit all words of the filter; at most 200 are drawn, so that a filter of 10,000 is quick.
(() => {
  const MOST = 200;
  const input = document.getElementById("filter"), body = document.getElementById("rows").tBodies[0];
  const count = document.getElementById("count"), more = document.getElementById("more");
  const rows = [...body.rows].map(row => ({ row, text: row.textContent.toLowerCase() }));
  let found = rows, most = MOST;
  const draw = () => {
    body.replaceChildren(...found.slice(0, most).map(each => each.row));
    const hidden = found.length - Math.min(found.length, most);
    more.hidden = !hidden;
    count.textContent = found.length + " of " + rows.length + " rows" +
      (hidden ? ", " + most + " shown" : "");
  };
  const filter = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    found = rows.filter(each => words.every(word => each.text.includes(word)));
    most = MOST;
    draw();
  };
  input.addEventListener("input", () => {
    filter();
    history.replaceState(null, "", input.value ? "#filter=" + encodeURIComponent(input.value) : "#");
  });
  more.addEventListener("click", () => { most += 1000; draw(); });
  const given = /^#filter=(.*)$/.exec(location.hash);
  if (given) { try { input.value = decodeURIComponent(given[1]); } catch { /* no text */ } }
  document.getElementById("controls").hidden = false;
  filter();
})();
