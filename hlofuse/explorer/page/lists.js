// A long list that creates only the rows in view, all of one height.

const ROW_HEIGHT = 44;

class LongList {
  constructor(label, makeRow, choose, rowHeight = ROW_HEIGHT) {
    this.rowHeight = rowHeight;
    this.makeRow = makeRow;
    this.choose = choose;
    this.items = [];
    this.chosen = -1;
    this.room = el("div", { class: "room" });
    this.element = el("div", {
      class: "long-list", role: "listbox", tabindex: 0, "aria-label": label,
      onscroll: () => this.draw(), onkeydown: (event) => this.key(event),
    }, this.room);
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  show(items, chosen) {
    this.items = items;
    this.room.style.height = `${items.length * this.rowHeight}px`;
    this.select(chosen);
  }

  // `chosen` is a place in the list; it is scrolled to if it cannot be seen.
  select(chosen) {
    this.chosen = chosen;
    const top = chosen * this.rowHeight, { scrollTop, clientHeight } = this.element;
    if (chosen >= 0 && (top < scrollTop || top + this.rowHeight > scrollTop + clientHeight))
      this.element.scrollTop = Math.max(0, top - clientHeight / 2);
    this.draw();
  }

  draw() {
    const { scrollTop, clientHeight } = this.element, { rowHeight } = this;
    const first = Math.max(0, Math.floor(scrollTop / this.rowHeight) - 4);
    const last = Math.min(this.items.length, Math.ceil((scrollTop + clientHeight) / this.rowHeight) + 4);
    const rows = [];
    for (let n = first; n < last; n++) {
      const row = el("div", {
        class: "row", role: "option", id: `row-${n}`, "aria-selected": String(n === this.chosen),
        "aria-setsize": this.items.length, "aria-posinset": n + 1, onclick: () => this.take(n, true),
      }, ...this.makeRow(this.items[n]));
      row.style.top = `${n * this.rowHeight}px`;
      for (const part of row.querySelectorAll(".first, .second")) part.title ||= part.textContent;
      rows.push(row);
    }
    this.room.replaceChildren(...rows);
    if (this.chosen >= first && this.chosen < last) this.element.setAttribute("aria-activedescendant", `row-${this.chosen}`);
    else this.element.removeAttribute("aria-activedescendant");
  }

  key(event) {
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 };
    const by = event.key === "Enter" && this.chosen >= 0 ? 0 : moves[event.key];
    if (by === undefined || !this.items.length) return;
    event.preventDefault();
    event.stopPropagation();
    this.take(Math.min(this.items.length - 1, Math.max(0, this.chosen + by)), !by);
  }

  take(n, isClick = false) {
    this.select(n);
    this.choose(this.items[n], n, isClick);
  }
}
