"use strict";
const table = document.querySelector("table");
if (table) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const text = document.getElementById("text");
  const outcome = document.getElementById("outcome");
  const action = document.getElementById("action");
  const shown = document.getElementById("shown");

  const filter = () => {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const fits = (!outcome.value || row.dataset.outcome === outcome.value)
        && (!action.value || row.dataset.action === action.value)
        && words.every((word) => row.textContent.toLowerCase().includes(word));
      row.hidden = !fits;
      count += fits ? 1 : 0;
    }
    shown.textContent = `${count} of ${rows.length} groups`;
  };
  for (const control of [text, outcome, action]) control.addEventListener("input", filter);
  filter();

  const value = (row, column) => row.cells[column].dataset.sort ?? row.cells[column].textContent.trim();
  table.tHead.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const heading = button.parentElement;
    const column = heading.cellIndex;
    const numeric = heading.dataset.kind === "number";
    const before = heading.getAttribute("aria-sort");
    const descending = before === "none" ? heading.dataset.first === "descending" : before === "ascending";
    for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const sign = descending ? -1 : 1;
    const compare = (a, b) => numeric ? Number(a) - Number(b) : a < b ? -1 : a > b ? 1 : 0;
    rows.sort((a, b) => sign * compare(value(a, column), value(b, column)));
    body.append(...rows);
  });

  body.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-copy]");
    if (!button) return;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "copied";
    } catch {
      const range = document.createRange();
      range.selectNodeContents(button.previousElementSibling);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      button.textContent = "selected";
    }
  });
}
