// A picture opened by itself fits the window; the wheel zooms at the pointer, dragging pans, a double click fits it again.
(() => {
  "use strict";
  const svg = document.documentElement;
  if (svg.localName !== "svg") return;
  const whole = svg.viewBox.baseVal;
  const natural = { width: whole.width, height: whole.height };
  const POINT = 4 / 3;  // pixels
  let view;
  svg.setAttribute("width", "100%");
  svg.setAttribute("height", "100%");
  const show = () => svg.setAttribute("viewBox", [view.x, view.y, innerWidth / view.scale, innerHeight / view.scale].join(" "));
  const fit = () => {
    const scale = Math.min(POINT, innerWidth / natural.width, innerHeight / natural.height);
    view = { scale, x: (natural.width - innerWidth / scale) / 2, y: Math.min(0, (natural.height - innerHeight / scale) / 2), fitted: true };
    if (natural.height * scale < innerHeight) view.y = 0;
    show();
  };
  const zoom = (factor, x, y) => {
    const scale = Math.min(16, Math.max(Math.min(POINT, innerWidth / natural.width, innerHeight / natural.height) / 2, view.scale * factor));
    view = { scale, x: view.x + x / view.scale - x / scale, y: view.y + y / view.scale - y / scale };
    show();
  };
  const pan = (dx, dy) => {
    view = { scale: view.scale, x: view.x - dx / view.scale, y: view.y - dy / view.scale };
    show();
  };
  let last = null;
  svg.addEventListener("wheel", (e) => { e.preventDefault(); zoom(Math.exp(-e.deltaY / 400), e.clientX, e.clientY); }, { passive: false });
  svg.addEventListener("pointerdown", (e) => { if (e.button === 0) last = [e.clientX, e.clientY]; });
  addEventListener("pointermove", (e) => {
    if (last === null) return;
    pan(e.clientX - last[0], e.clientY - last[1]);
    last = [e.clientX, e.clientY];
  });
  addEventListener("pointerup", () => { last = null; });
  svg.addEventListener("dblclick", fit);
  addEventListener("resize", () => (view.fitted ? fit() : show()));
  addEventListener("keydown", (e) => {
    const step = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[e.key];
    if (step) pan(...step);
    else if (e.key === "+" || e.key === "=") zoom(1.25, innerWidth / 2, innerHeight / 2);
    else if (e.key === "-") zoom(0.8, innerWidth / 2, innerHeight / 2);
    else if (e.key === "0") fit();
    else return;
    e.preventDefault();
  });
  fit();
})();
