/** Converts offsets of a text to lines and columns. */

/**
 * A position in a text, both numbers from 1. The column counts UTF-16 code units, as the Language Server
 * Protocol does.
 */
export interface Position {
  line: number;
  column: number;
}

/**
 * Returns a function from an offset to its line and column. LF, CRLF and CR end a line. Builds the index on
 * first use.
 */
export function lineIndex(text: string): (offset: number) => Position {
  let starts: number[] | undefined;
  return (offset) => {
    starts ??= lineStarts(text);
    const clamped = Math.max(0, Math.min(offset, text.length));
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (starts[middle]! <= clamped) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: clamped - starts[low]! + 1 };
  };
}

function lineStarts(text: string): number[] {
  const starts = [0];
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === 10 || code === 13 && text.charCodeAt(index + 1) !== 10) starts.push(index + 1);
  }
  return starts;
}
