// Tables as CSV, as a spreadsheet reads them.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const source = readFileSync(new URL("../../src/report/html/js/download.js", import.meta.url), "utf8");
const alone = source.replace(/^import .*$/m, "");
const { csv } = await import(`data:text/javascript,${encodeURIComponent(alone)}`);

const cells = (row) => csv({ columns: [], rows: [row] }).slice(1, -1);

test("no cell is a formula", () => {
  assert.equal(cells(["=1+1"]), "'=1+1");
  assert.equal(cells(["@SUM(A1)"]), "'@SUM(A1)");
  assert.equal(cells(["+cmd|x", "-cmd|x"]), "'+cmd|x,'-cmd|x");
  assert.equal(cells(["\t=1", "\r=1"]), "'\t=1,\"'\r=1\"");
  assert.equal(cells(['=HYPERLINK("x","y")']), '"\'=HYPERLINK(""x"",""y"")"');
  assert.equal(csv({ columns: [{ name: "=a" }], rows: [] }), "'=a\n");
});

test("numbers and other words stay as they are", () => {
  assert.equal(cells([-1.5, "-2e-7", "+3", 0, null]), "-1.5,-2e-7,+3,0,");
  assert.equal(cells(["a=b", "a,b", "–"]), 'a=b,"a,b",–');
});
