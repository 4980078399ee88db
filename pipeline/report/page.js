"use strict";
// Filters rows. Everything is on the page without this; folds that have a match open, and close again afterwards.
for (const bar of document.querySelectorAll(".filter")) {
  const section = document.getElementById(bar.dataset.of);
  const rows = [...section.querySelectorAll("tbody tr")].map((row) => [row, row.textContent.toLowerCase()]);
  const folds = [...section.querySelectorAll("details")].map((fold) => [fold, fold.open]);
  const search = bar.querySelector("input[type=search]");
  const only = bar.querySelector("input[type=checkbox]");
  const said = bar.querySelector("output");
  const apply = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const active = words.length > 0 || Boolean(only?.checked);
    let shown = 0;
    for (const [row, text] of rows) {
      const match = words.every((word) => text.includes(word)) && (!only?.checked || row.className === "bad");
      row.hidden = !match;
      shown += match ? 1 : 0;
    }
    for (const [fold, open] of folds) {
      const matches = fold.querySelector("tbody tr:not([hidden])") !== null;
      fold.hidden = active && !matches;
      fold.open = active ? matches : open;
    }
    said.textContent = active ? `${shown} of ${rows.length} rows shown` : "";
  };
  search.addEventListener("input", apply);
  only?.addEventListener("change", apply);
  bar.hidden = false;
}
