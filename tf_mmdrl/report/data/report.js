// A click on a heading sorts its table, numbers from the highest.
for (const button of document.querySelectorAll("thead button")) {
  button.addEventListener("click", () => {
    const head = button.parentElement;
    const column = head.cellIndex;
    const body = head.closest("table").tBodies[0];
    const words = head.cellIndex === 0 || head.classList.contains("words");
    const first = words ? "ascending" : "descending";
    const second = words ? "descending" : "ascending";
    const order = head.ariaSort === first ? second : first;
    for (const other of head.parentElement.cells) {
      other.removeAttribute("aria-sort");
    }
    head.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const value = (row) => row.cells[column].dataset.order;
    const compare = (one, other) => {
      const [a, b] = [value(one), value(other)];
      if (a !== undefined && b !== undefined) return sign * (a - b);
      if (a !== undefined || b !== undefined) return a === undefined ? 1 : -1;
      const text = (row) => row.cells[column].textContent;
      return sign * text(one).localeCompare(text(other));
    };
    body.append(...[...body.rows].sort(compare));
  });
}
