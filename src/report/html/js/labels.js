// Names beside marks that keep apart: from each other, from the marks, and inside the chart.

// Distance between a mark and its name, first choice first.
const REACHES = [9, 22];

/**
 * For each of `marks` (`{ x, y, width }`: a point and how wide its name is) the box of its name,
 * or null where there is no room near it. Earlier marks choose first. `bounds` is `{ left, top, right,
 * bottom }`, `height` that of a line.
 */
export function apart(marks, bounds, height) {
  const taken = marks.map(({ x, y }) => ({ x: x - 5, y: y - 5, width: 10, height: 10 }));
  return marks.map((mark) => {
    const box = places(mark, height).find(
      (place) => inside(place, bounds) && !taken.some((other) => meet(place, other)),
    );
    if (box) taken.push(box);
    return box ?? null;
  });
}

/** Where a name may stand: right, left, above and below, then further away. */
function places({ x, y, width }, height) {
  const middle = y - height / 2;
  return REACHES.flatMap((reach) =>
    [
      [x + reach, middle],
      [x - reach - width, middle],
      ...[y - reach - height, y + reach].flatMap((above) =>
        [x - width / 2, x, x - width].map((left) => [left, above]),
      ),
    ].map(([left, above]) => ({ x: left, y: above, width, height })),
  );
}

function inside(box, { left, top, right, bottom }) {
  return box.x >= left && box.y >= top && box.x + box.width <= right && box.y + box.height <= bottom;
}

function meet(a, b) {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}
