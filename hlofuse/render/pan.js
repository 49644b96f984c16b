// A picture opened by itself fits the window, or has its natural size where its text would be too small. The wheel
// zooms at the pointer, dragging pans; a double click or 0 fits the whole picture, and once more returns.
(() => {
  "use strict";
  const svg = document.documentElement;
  if (svg.localName !== "svg") return;
  const { width, height } = svg.viewBox.baseVal;
  const POINT = 4 / 3;  // pixels
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
  const start = () => place(whole() >= 0.75 * POINT ? whole() : POINT);
  const zoom = (factor, x, y) => {
    const scale = Math.min(16, Math.max(whole() / 2, view.scale * factor));
    view = { scale, x: view.x + x / view.scale - x / scale, y: view.y + y / view.scale - y / scale };
    show();
  };
  const pan = (dx, dy) => {
    view = { scale: view.scale, x: view.x - dx / view.scale, y: view.y - dy / view.scale };
    show();
  };
  const toggle = () => (view.placed === "whole" ? start() : place(whole()));
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
  svg.addEventListener("dblclick", toggle);
  addEventListener("resize", replace);
  addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key in steps) pan(...steps[e.key]);
    else if (e.key === "+" || e.key === "=") zoom(1.25, innerWidth / 2, innerHeight / 2);
    else if (e.key === "-") zoom(0.8, innerWidth / 2, innerHeight / 2);
    else if (e.key === "0") toggle();
    else return;
    e.preventDefault();
  });
  start();
})();
