// Charts as files: SVG with its colours written out, PNG made from that, CSV of its table.

import { themed } from "./dom.js";

const STYLED = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-opacity",
  "stroke-linecap",
  "opacity",
  "font-size",
  "font-weight",
  "font-family",
  "text-anchor",
  "dominant-baseline",
];

/** The text of an SVG that looks the same outside this page. */
export function standalone(picture) {
  const copy = picture.cloneNode(true);
  const originals = [picture, ...picture.querySelectorAll("*")];
  const copies = [copy, ...copy.querySelectorAll("*")];
  originals.forEach((original, i) => {
    const computed = getComputedStyle(original);
    for (const property of STYLED) copies[i].setAttribute(property, computed.getPropertyValue(property));
    copies[i].removeAttribute("class");
    copies[i].removeAttribute("tabindex");
  });
  const { width, height } = picture.viewBox.baseVal;
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  ground.setAttribute("width", "100%");
  ground.setAttribute("height", "100%");
  ground.setAttribute("fill", themed("--ground"));
  copy.insertBefore(ground, copy.firstChild);
  return new XMLSerializer().serializeToString(copy);
}

/** SVG text drawn at twice its size. */
export function png(text) {
  return new Promise((done, failed) => {
    const picture = new Image();
    const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
    picture.onerror = () => failed(new Error("the picture could not be drawn"));
    picture.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = 2 * picture.width;
      canvas.height = 2 * picture.height;
      canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
      URL.revokeObjectURL(address);
      canvas.toBlob(
        (blob) => (blob ? done(blob) : failed(new Error("the picture is too large"))),
        "image/png",
      );
    };
    picture.src = address;
  });
}

/** What a spreadsheet takes for a formula, unless all of it is a number. */
const FORMULA = /^[=+\-@\t\r]/;
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

/**
 * A table as CSV; cells with a comma, quote or line end are quoted, and those that a spreadsheet would run
 * stand behind an apostrophe.
 */
export function csv({ columns, rows }) {
  const cell = (value) => {
    const plain = value === null || value === undefined ? "" : String(value);
    const text = FORMULA.test(plain) && !NUMBER.test(plain) ? `'${plain}` : plain;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = [columns.map((column) => column.name), ...rows];
  return lines.map((line) => line.map(cell).join(",")).join("\n") + "\n";
}

/** Offers `content` as a file of that name. */
export function save(name, content, type) {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
