/** How wide text is on a terminal. */

/** Wide by Unicode's East Asian Width (UAX 11), and what terminals draw as pictures. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;
const ZERO = /\p{Mn}|\p{Me}|\p{Cf}/u;

/** Returns text cut to a number of columns, with `…` at its end when something was cut. Takes no colour codes. */
export function cutToWidth(text: string, columns: number): string {
  let width = 0;
  let kept = "";
  for (const point of text) {
    const next = width + widthOf(point);
    if (next > columns) return columns < 1 ? "" : `${dropTo(kept, columns - 1)}…`;
    kept += point;
    width = next;
  }
  return kept;
}

function dropTo(text: string, columns: number): string {
  const points = [...text];
  let width = points.reduce((sum, point) => sum + widthOf(point), 0);
  while (width > columns) width -= widthOf(points.pop() ?? "");
  return points.join("");
}

function widthOf(point: string): number {
  return ZERO.test(point) ? 0 : WIDE.test(point) ? 2 : 1;
}
