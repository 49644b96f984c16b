// A picture opened by itself fits the window, or has its natural size where its text would be too small, or the
// window's width without a box at its upper left. One with a focus that is too large for the window opens on all that is in focus. The wheel
// zooms at the pointer, dragging pans; a double click or 0 fits the whole picture, and once more returns or zooms.
(() => {
  "use strict";
  const svg = document.documentElement;
  if (svg.localName !== "svg") return;
  const { width, height } = svg.viewBox.baseVal;
  const POINT = 4 / 3, EDGE = 16;  // pixels
  let view, last = null;
  svg.setAttribute("width", "100%");
  svg.setAttribute("height", "100%");
  svg.setAttribute("preserveAspectRatio", "xMinYMin");
  const whole = () => Math.min(POINT, innerWidth / width, innerHeight / height);
  const show = () => {
    svg.setAttribute("viewBox", `${view.x} ${view.y} ${innerWidth / view.scale} ${innerHeight / view.scale}`);
  };
  const place = (scale) => {
    const spare = (side, length) => (side / scale > length ? (length - side / scale) / 2 : 0);
    view = { scale, x: spare(innerWidth, width), y: 0, placed: scale === whole() ? "whole" : "readable" };
    show();
  };
  // All of these in the window, at their natural size at most.
  const frame = (elements) => {
    const { scale } = view, places = elements.map((e) => e.getBoundingClientRect());
    const [left, top] = ["left", "top"].map((side) => Math.min(...places.map((p) => p[side])));
    const width = Math.max(...places.map((p) => p.right)) - left, height = Math.max(...places.map((p) => p.bottom)) - top;
    const fitting = Math.min(POINT, scale * Math.min((innerWidth - 2 * EDGE) / width, (innerHeight - 2 * EDGE) / height));
    const begin = (at, from, length, room) => at + (from + length / 2) / scale - room / 2 / fitting;
    view = { scale: fitting, x: begin(view.x, left, width, innerWidth), y: begin(view.y, top, height, innerHeight), placed: "readable" };
    show();
  };
  const start = () => {
    const marked = [...svg.querySelectorAll(".marked")], fits = whole() >= 0.75 * POINT;
    place(fits || marked.length ? whole() : POINT);
    const boxes = [...svg.querySelectorAll(".node:not([id^=legend])")].map((e) => e.getBoundingClientRect());
    if (!fits && marked.length) frame(marked);
    else if (boxes.every((box) => box.right > innerWidth || box.bottom > innerHeight)) place(Math.min(POINT, innerWidth / width));
  };
  const zoom = (factor, x, y) => {
    const scale = Math.min(16, Math.max(whole() / 2, view.scale * factor));
    view = { scale, x: view.x + x / view.scale - x / scale, y: view.y + y / view.scale - y / scale };
    show();
  };
  const pan = (dx, dy) => {
    view = { scale: view.scale, x: view.x - dx / view.scale, y: view.y - dy / view.scale };
    show();
  };
  const toggle = (x, y) => {
    if (view.placed !== "whole") return void place(whole());
    start();
    if (view.placed === "whole") zoom(POINT / view.scale, x, y);
  };
  const replace = () => (view.placed === "whole" ? place(whole()) : view.placed ? start() : show());
  const steps = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
  svg.addEventListener("wheel", (e) => {
    e.preventDefault();
    zoom(Math.exp(-e.deltaY / 400), e.clientX, e.clientY);
  }, { passive: false });
  svg.addEventListener("pointerdown", (e) => { if (e.button === 0) last = [e.clientX, e.clientY]; });
  addEventListener("pointermove", (e) => {
    if (last === null) return;
    pan(e.clientX - last[0], e.clientY - last[1]);
    last = [e.clientX, e.clientY];
  });
  addEventListener("pointerup", () => { last = null; });
  svg.addEventListener("dblclick", (e) => toggle(e.clientX, e.clientY));
  addEventListener("resize", replace);
  addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key in steps) pan(...steps[e.key]);
    else if (e.key === "+" || e.key === "=") zoom(1.25, innerWidth / 2, innerHeight / 2);
    else if (e.key === "-") zoom(0.8, innerWidth / 2, innerHeight / 2);
    else if (e.key === "0") toggle(innerWidth / 2, innerHeight / 2);
    else return;
    e.preventDefault();
  });
  start();
})();
