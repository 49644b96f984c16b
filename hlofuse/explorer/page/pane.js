// A picture one can zoom and move.

const READABLE = 0.8, READABLE_SHEET = 0.5;

class Pane {
  constructor() {
    this.svg = svg("svg", { role: "group", "aria-label": "The module at this step" });
    this.label = el("p", { class: "pane-label" });
    this.element = el("div", { class: "pane" }, this.label, this.svg);
    this.views = new Map();  // of each picture shown so far
    this.svg.addEventListener("wheel", (event) => this.zoom(event), { passive: false });
    this.svg.addEventListener("pointerdown", (event) => this.drag(event));
    // Not on the picture itself: that alone would make it a stop of Tab.
    this.element.addEventListener("focusin", (event) => this.toFocus(event.target));
    new ResizeObserver(() => {
      this.views.clear();
      if (this.size) this.start(this.focus);
    }).observe(this.svg);
  }

  get width() { return this.svg.getBoundingClientRect().width; }

  show(key, group, width, height, label, focus, readable = READABLE) {
    this.readable = readable;
    this.size = [width, height];
    this.label.textContent = label;
    this.label.hidden = !label;
    this.key = key;
    this.focus = focus;
    this.svg.replaceChildren(group);
    if (this.views.has(key)) this.look(this.views.get(key));
    else this.start(focus);
    if (focus) this.reveal(focus);
  }

  // All of it if that can be read, else a part of it at a size that can.
  start(focus) {
    this.fit();
    const view = this.views.get(this.key), room = this.svg.getBoundingClientRect();
    if (!room.width || room.width / view.w >= this.readable) return;
    const w = room.width / this.readable, h = room.height / this.readable, [width] = this.size;
    this.look(this.within({ x: focus ? focus[0] - w / 2 : (width - w) / 2, y: focus ? focus[1] - 0.4 * h : -h, w, h }));
  }

  // Nothing to be seen of what lies around the picture, as long as the picture fills the room.
  within(view) {
    const [width, height] = this.size;
    // Room for the label, which is of one size whatever that of the picture is.
    const top = this.label.hidden ? 30 : Math.max(30, (36 * view.h) / this.svg.getBoundingClientRect().height);
    const along = (at, room, whole, edge) => (room > whole + 2 * edge ? (whole - room) / 2 : Math.min(whole + 30 - room, Math.max(-edge, at)));
    return { ...view, x: along(view.x, view.w, width, 30), y: along(view.y, view.h, height, top) };
  }

  // Moves the picture if the place is not in it.
  reveal([x, y]) {
    const view = this.views.get(this.key), inX = Math.min(80, view.w / 8), inY = Math.min(50, view.h / 8);
    const shift = (at, from, size, edge) => (at < from + edge || at > from + size - edge ? at - size / 2 : from);
    const moved = { ...view, x: shift(x, view.x, view.w, inX), y: shift(y, view.y, view.h, inY) };
    if (moved.x !== view.x || moved.y !== view.y) this.look(this.within(moved));
  }

  // The first marked box, if none is in view.
  revealMarked() {
    const marked = [...this.element.querySelectorAll(".marked")], room = this.svg.getBoundingClientRect();
    const inView = (e) => { const r = e.getBoundingClientRect(); return r.top >= room.top && r.bottom <= room.bottom && r.left >= room.left && r.right <= room.right; };
    if (!marked.length || marked.some(inView)) return;
    const box = marked[0].getBBox(), moved = marked[0].transform.baseVal.consolidate()?.matrix;
    this.reveal([box.x + box.width / 2 + (moved?.e ?? 0), box.y + box.height / 2 + (moved?.f ?? 0)]);
  }

  // Whoever goes from box to box by Tab sees where.
  toFocus(target) {
    const view = this.views.get(this.key);
    if (!view || !target.matches(":focus-visible")) return;
    const place = target.getBoundingClientRect(), room = this.svg.getBoundingClientRect();
    this.reveal([
      view.x + ((place.x + place.width / 2 - room.x) / room.width) * view.w,
      view.y + ((place.y + place.height / 2 - room.y) / room.height) * view.h,
    ]);
  }

  fit() {
    if (!this.size) return;
    const [width, height] = this.size, room = this.svg.getBoundingClientRect();
    // Never larger than life: a few boxes would fill the screen.
    const head = this.label.hidden ? 0 : 30;
    const scale = Math.min(1.15, room.width / (width + 20), Math.max(1, room.height - head) / (height + 20)) || 1;
    const w = room.width / scale, h = room.height / scale;
    this.look({ x: (width - w) / 2, y: (height - h - head / scale) / 2, w, h });
  }

  look(view) {
    this.views.set(this.key, view);
    if (view.w > 0 && view.h > 0) this.svg.setAttribute("viewBox", `${view.x} ${view.y} ${view.w} ${view.h}`);
  }

  zoom(event) {
    event.preventDefault();
    const room = this.svg.getBoundingClientRect();
    const px = (event.clientX - room.left) / room.width, py = (event.clientY - room.top) / room.height;
    this.magnify(Math.exp(event.deltaY * 0.0015), px, py);
  }

  // `by` below 1 comes nearer; what lies at this part of the width and height stays there.
  magnify(by, px = 0.5, py = 0.5) {
    const view = this.views.get(this.key);
    if (view) this.look({ x: view.x + view.w * px * (1 - by), y: view.y + view.h * py * (1 - by), w: view.w * by, h: view.h * by });
  }

  drag(event) {
    if (event.button !== 0) return;
    const start = this.views.get(this.key), room = this.svg.getBoundingClientRect();
    const move = (e) => this.look({
      ...start, x: start.x - ((e.clientX - event.clientX) * start.w) / room.width,
      y: start.y - ((e.clientY - event.clientY) * start.h) / room.height,
    });
    const stop = () => {
      window.removeEventListener("pointermove", move);
      window.removeEventListener("pointerup", stop);
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", stop);
  }
}
