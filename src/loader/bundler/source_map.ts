/**
 * Source maps (ECMA-426): a bundle ends with its map, which gives the position in the author's file for one
 * in the bundle.
 */

/** Used fields of a source map. */
export interface SourceMap {
  version: number;
  sources: string[];
  names: string[];
  mappings: string;
}

/** Starts the comment that ends a bundle; the map in base64 follows. */
const COMMENT = "\n//# sourceMappingURL=data:application/json;base64,";

/** Returns the code with its map as the last line. */
export function withMap(code: string, map: SourceMap): string {
  return `${code}${COMMENT}${new TextEncoder().encode(JSON.stringify(map)).toBase64()}\n`;
}

/**
 * Splits a bundle into its code and the comment with its map; the comment is empty if the bundle has no map.
 */
export function splitMap(bundle: string): { code: string; comment: string } {
  const end = bundle.lastIndexOf(COMMENT);
  return end === -1
    ? { code: bundle, comment: "" }
    : { code: bundle.slice(0, end), comment: bundle.slice(end) };
}

/** Reads a comment of {@link splitMap}. */
export function readMap(comment: string): SourceMap {
  const encoded = comment.slice(COMMENT.length).trim();
  return JSON.parse(new TextDecoder().decode(Uint8Array.fromBase64(encoded))) as SourceMap; // written by withMap
}

/** A position in an author's file; line and column count from 1. */
export interface OriginalPlace {
  source: string;
  line: number;
  column: number;
}

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const VALUE = new Map([...DIGITS].map((digit, value) => [digit, value]));

/** Returns the original position of each position (line and column from 0); undefined if the map has none. */
export function originalPlaces(
  map: SourceMap,
  places: readonly { line: number; column: number }[],
): (OriginalPlace | undefined)[] {
  const found: (OriginalPlace | undefined)[] = places.map(() => undefined);
  if (places.length === 0) return found;
  let source = 0, sourceLine = 0, sourceColumn = 0;
  for (const [line, text] of map.mappings.split(";").entries()) {
    let column = 0;
    for (const segment of text === "" ? [] : text.split(",")) {
      const fields = decodeVlq(segment);
      column += fields[0] ?? 0;
      if (fields.length < 4) continue;
      source += fields[1] ?? 0;
      sourceLine += fields[2] ?? 0;
      sourceColumn += fields[3] ?? 0;
      for (const [index, place] of places.entries()) {
        if (place.line !== line || place.column < column) continue;
        const url = map.sources[source];
        if (url === undefined) continue;
        found[index] = { source: url, line: sourceLine + 1, column: sourceColumn + 1 }; // the last segment before the position
      }
    }
  }
  return found;
}

/** Returns the numbers of one segment: base64 digits of 5 bits each; the sixth bit marks continuation. */
function decodeVlq(segment: string): number[] {
  const numbers: number[] = [];
  let value = 0, shift = 0;
  for (const digit of segment) {
    const bits = VALUE.get(digit);
    if (bits === undefined) return numbers; // not a map of esbuild: keeps the numbers so far
    value += (bits & 31) << shift;
    if (bits & 32) shift += 5;
    else {
      numbers.push(value & 1 ? -(value >>> 1) : value >>> 1);
      value = 0;
      shift = 0;
    }
  }
  return numbers;
}
