// A picture one can zoom and move.

const TEXT = 12, UNREADABLE = 11, LINE = 15, NEAR = 0.55;

class Pane {
  // `resized` draws anew what is laid out for the room there is; `letGo` is for a click beside everything.
  constructor(resized, letGo) {
    this.svg = svg("svg", { role: "group", "aria-label": "The module at this step" });
    this.label = el("p", { class: "pane-label" });
    this.element = el("div", { class: "pane" }, this.label, this.svg);
    this.views = new Map();  // of each picture shown so far
    this.svg.addEventListener("wheel", (event) => this.zoom(event), { passive: false });
    this.svg.addEventListener("pointerdown", (event) => this.drag(event));
    // Not on the picture itself: that alone would make it a stop of Tab.
    this.element.addEventListener("focusin", (event) => this.toFocus(event.target));
    this.svg.addEventListener("click", (event) => { if (event.target === this.svg) letGo(); });
    new ResizeObserver(() => {
      if (this.size && this.resized()) resized();
    }).observe(this.svg);
  }

  // The size of the picture on the screen. Asking for it costs a layout: once for each drawing is enough.
  measure() {
    this.box = this.svg.getBoundingClientRect();
    return `${this.box.width} ${this.box.height}`;
  }

  // Whether the room has changed since it was measured; all views are of that room.
  resized() {
    const before = this.measured;
    this.measured = this.measure();
    if (before === this.measured) return false;
    this.views.clear();
    return true;
  }

  // What a layout may fill for its text to be as large as it should be.
  get room() {
    this.measured ||= this.measure();
    const { width, height } = this.box;
    return { width: Math.max(200, width - 30), height: Math.max(200, height - (this.label.hidden ? 30 : 60)) };
  }

  // `focus` is what is to be seen, `begin` where to begin if not all can be; without both all of it is shown.
  show(key, group, width, height, label, focus, begin, near = false) {
    this.size = [width, height];
    this.label.textContent = label;
    this.label.hidden = !label;
    this.key = key;
    this.focus = focus;
    const active = this.svg.contains(document.activeElement) && document.activeElement.dataset.id;
    this.svg.replaceChildren(group);
    if (active) [...group.querySelectorAll("[data-id]")].find((e) => e.dataset.id === active)?.focus({ preventScroll: true });
    if (this.views.has(key)) this.look(this.views.get(key));
    else this.start(focus, begin);
    if (focus) this.reveal(focus, near);
  }

  // All of it if that can be read, else a part of it at a size that can.
  start(focus, begin) {
    this.fit();
    const view = this.views.get(this.key), room = this.box;
    if (!room.width || room.width / view.w >= READABLE || !(focus ?? begin)) return;
    const w = room.width / READABLE, h = room.height / READABLE;
    const [x, y] = focus ?? begin;
    this.look(this.within({ x: x - w / 2, y: y - (focus ? 0.4 : 0.2) * h, w, h }));
  }

  // Nothing to be seen of what lies around the picture, as long as the picture fills the room.
  within(view) {
    const [width, height] = this.size;
    // Room for the label, which is of one size whatever that of the picture is.
    const top = this.label.hidden ? 30 : Math.max(30, (36 * view.h) / this.box.height);
    const along = (at, room, whole, edge) => (room > whole + 2 * edge ? (whole - room) / 2 : Math.min(whole + 30 - room, Math.max(-edge, at)));
    return { ...view, x: along(view.x, view.w, width, 30), y: along(view.y, view.h, height, top) };
  }

  // Moves the picture if the place is not in it; with `near` also where names there could not be read.
  reveal([x, y], near = false) {
    if (near && this.box.width / this.views.get(this.key).w < NEAR) {
      const w = this.box.width / READABLE, h = this.box.height / READABLE;
      return this.look(this.within({ x: x - w / 2, y: y - h / 2, w, h }));
    }
    const view = this.views.get(this.key), inX = Math.min(80, view.w / 8), inY = Math.min(50, view.h / 8);
    const shift = (at, from, size, edge) => (at < from + edge || at > from + size - edge ? at - size / 2 : from);
    const moved = { ...view, x: shift(x, view.x, view.w, inX), y: shift(y, view.y, view.h, inY) };
    if (moved.x !== view.x || moved.y !== view.y) this.look(this.within(moved));
  }

  // The marked box with most time, if it is not in view.
  revealMarked() {
    const marked = [...this.element.querySelectorAll(".marked")].sort((a, b) => b.dataset.us - a.dataset.us), room = this.svg.getBoundingClientRect();
    const inView = (e) => { const r = e.getBoundingClientRect(); return r.top >= room.top && r.bottom <= room.bottom && r.left >= room.left && r.right <= room.right; };
    if (!marked.length) return;
    const box = marked[0].getBBox(), moved = marked[0].transform.baseVal.consolidate()?.matrix;
    const place = [box.x + box.width / 2 + (moved?.e ?? 0), box.y + box.height / 2 + (moved?.f ?? 0)];
    if (!inView(marked[0]) || this.box.width / this.views.get(this.key).w < NEAR) this.reveal(place, true);
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

  // Keeps in its place what stands elsewhere in the next picture.
  shift(dx, dy) {
    const view = this.views.get(this.key);
    if (view) this.views.set(this.key, { ...view, x: view.x + dx, y: view.y + dy });
  }

  fit() {
    if (!this.size) return;
    const [width, height] = this.size, room = this.box;
    // Not too large: a few boxes would fill the screen.
    const head = this.label.hidden ? 0 : 30;
    const scale = Math.min(LARGEST, room.width / (width + 4), Math.max(1, room.height - head) / (height + 4)) || 1;
    const w = room.width / scale, h = room.height / scale;
    this.look({ x: (width - w) / 2, y: (height - h - head / scale) / 2, w, h });
  }

  look(view) {
    this.views.set(this.key, view);
    const scale = this.box.width / view.w;
    // Far away names stay, and figures below them, in the size they can be read at and as long as their boxes have room.
    const far = this.svg.classList.toggle("far", scale * TEXT < UNREADABLE);
    this.svg.querySelectorAll(".far-name").forEach((text) => {
      const { name, figures, room, height } = text.dataset;
      const fitted = (words, font) => far && fitText(words, room * scale, font);
      const two = height * scale > 2 * LINE + 4 ? fitted(figures, PLAIN) : "", first = fitted(name, BOLD);
      const line = (words, dy, of) => svg("tspan", { x: text.getAttribute("x"), dy, class: of }, words);
      text.replaceChildren(...(two ? [line(first, `${-LINE / 2 / scale}px`, ""), line(two, `${LINE / scale}px`, "figures")] : first ? [first] : []));
    });
    // Titles of containers within others would cover one another.
    this.svg.querySelectorAll(".titles .name").forEach((text) => {
      const { name, room, depth } = text.dataset, crowded = far && depth > 1 && HEAD * scale < TEXT + 2;
      text.textContent = !far ? name : crowded ? "" : fitText(name, room * scale, BOLD);
    });
    this.svg.style.setProperty("--far-text", `${TEXT / scale}px`);
    if (view.w > 0 && view.h > 0) this.svg.setAttribute("viewBox", `${view.x} ${view.y} ${view.w} ${view.h}`);
  }

  zoom(event) {
    event.preventDefault();
    const room = this.svg.getBoundingClientRect();
    const px = (event.clientX - room.left) / room.width, py = (event.clientY - room.top) / room.height;
    this.magnify(Math.exp(event.deltaY * 0.0015), px, py);
  }

  // By hand: the picture next to this one moves with it.
  move(view) {
    const before = this.views.get(this.key), { other } = this, its = other?.views.get(other.key);
    this.look(view);
    if (!its) return;
    const scale = its.w / before.w;
    other.look({ x: its.x + (view.x - before.x) * scale, y: its.y + (view.y - before.y) * scale, w: view.w * scale, h: view.h * scale });
  }

  // `by` below 1 comes nearer; what lies at this part of the width and height stays there.
  magnify(by, px = 0.5, py = 0.5) {
    const view = this.views.get(this.key);
    if (view) this.move({ x: view.x + view.w * px * (1 - by), y: view.y + view.h * py * (1 - by), w: view.w * by, h: view.h * by });
  }

  drag(event) {
    if (event.button !== 0) return;
    const start = this.views.get(this.key), room = this.svg.getBoundingClientRect();
    if (!start) return;
    let moved = false;
    const move = (e) => {
      if (!moved && Math.hypot(e.clientX - event.clientX, e.clientY - event.clientY) < 4) return;
      moved = true;
      this.move({
        ...start, x: start.x - ((e.clientX - event.clientX) * start.w) / room.width,
        y: start.y - ((e.clientY - event.clientY) * start.h) / room.height,
      });
    };
    const stop = () => {
      // Whoever moves the picture presses nothing in it.
      if (moved) {
        const swallow = (e) => e.stopPropagation();
        window.addEventListener("click", swallow, { capture: true, once: true });
        setTimeout(() => window.removeEventListener("click", swallow, { capture: true }), 0);
      }
      window.removeEventListener("pointermove", move);
      window.removeEventListener("pointerup", stop);
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", stop);
  }
}
