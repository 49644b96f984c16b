// Making elements: text goes in as text, whatever it says.

const SVG = "http://www.w3.org/2000/svg";

function put(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

function el(tag, attributes = {}, ...children) { return put(document.createElement(tag), attributes, children); }

function svg(tag, attributes = {}, ...children) {
  return put(document.createElementNS(SVG, tag), attributes, children);
}

function byId(id) { return document.getElementById(id); }

// Buttons of which one is pressed.
function segments(home, choices, chosen, choose) {
  home.replaceChildren(...choices.map(([key, words, title]) =>
    el("button", {
      type: "button", "data-key": key, title, "aria-pressed": String(key === chosen), onclick: () => choose(key),
    }, words)));
}

// Whether an event at something drawn as a button presses it; it is not seen by others then.
function presses(event) {
  if (event.type === "keydown" && event.key !== "Enter" && event.key !== " ") return false;
  event.preventDefault();
  event.stopPropagation();
  return true;
}

let lastPress = {};

// What a press does: a click or a key selects, a second click or Enter on what is selected opens it.
function pressing(id, chosen, select, open) {
  return (event) => {
    if (!presses(event)) return;
    const now = performance.now(), twice = event.type === "click" && lastPress.id === id && now - lastPress.at < 400;
    if (event.type === "click") lastPress = twice ? {} : { id, at: now };
    if (open && (twice || (event.key === "Enter" && chosen))) open();
    else select();
  };
}
