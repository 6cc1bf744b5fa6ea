// Makes the pictures of README.md and docs/report.md: node pictures.mjs GPT2_XL_RESULT GPT3_RESULT CHIPS_RESULT

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { launch, open, phaze, scratch } from "./browser.mjs";

const IMAGES = fileURLToPath(new URL("../../docs/images", import.meta.url));
const [first, second, chips] = process.argv.slice(2);
if (!chips) {
  console.error("usage: node pictures.mjs GPT2_XL_RESULT GPT3_RESULT CHIPS_RESULT");
  process.exit(2);
}

mkdirSync(IMAGES, { recursive: true });
const browser = await launch();
await picture(first, "answer", "report.png");
await picture(second, "layer", "layer.png");
await picture(chips, "answer", "chip.png");
await browser.close();

/** One section of a result's page, without the bar that would lie over it. */
async function picture(result, section, name) {
  const file = join(scratch(), "report.html");
  phaze("report", result, "--out", file);
  const { page } = await open(browser, file, { width: 1180 });
  await page.addStyleTag({
    content: "header { display: none } section { padding: 24px } section > :last-child { margin-bottom: 0 }",
  });
  await page.locator(`section#${section}`).screenshot({ path: join(IMAGES, name) });
}
