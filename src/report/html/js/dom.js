// Builds page elements. Text only ever enters through textContent, so no name can become markup, and what
// would steer a terminal that it is pasted into, or turn the direction of writing, is shown as its code.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element; `on…` attributes are listeners, null and false ones are left out. */
export function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element, in the same manner. */
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Empties an element and gives it new children. */
export function refill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter(present).map(visible));
  return element;
}

// Control characters but for line ends and tabs, and those that turn the direction of writing.
const STEERING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

function visible(child) {
  if (child instanceof Node) return child;
  return String(child).replace(STEERING, (sign) => `\\u{${sign.codePointAt(0).toString(16)}}`);
}

/** What the theme says a CSS variable is at this moment. */
export function themed(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter(present).map(visible));
  return element;
}

function present(child) {
  return child !== null && child !== undefined && child !== false;
}
