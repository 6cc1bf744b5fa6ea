// Builds page elements. Text only ever enters through textContent, so no name can become markup.

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
  element.replaceChildren(...children.flat(Infinity).filter(present));
  return element;
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
  element.append(...children.flat(Infinity).filter(present));
  return element;
}

function present(child) {
  return child !== null && child !== undefined && child !== false;
}
