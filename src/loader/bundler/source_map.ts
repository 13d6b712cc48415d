/** Source maps (ECMA-426) read backwards: where a character of a bundle stood in the author's file. */

/** The parts of a source map that are used. */
export interface SourceMap {
  version: number;
  sources: string[];
  names: string[];
  mappings: string;
}

/** A place in an author's file, line and column from 1. */
export interface OriginalPlace {
  source: string;
  line: number;
  column: number;
}

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const VALUE = new Map([...DIGITS].map((digit, value) => [digit, value]));

/** Returns where each place of a text (line from 0, column from 0) came from; undefined where the map does not say. */
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
        found[index] = { source: url, line: sourceLine + 1, column: sourceColumn + 1 }; // the last one before the place
      }
    }
  }
  return found;
}

/** Returns the numbers of one segment: base64 digits of 5 bits each, the sixth says that more follow. */
function decodeVlq(segment: string): number[] {
  const numbers: number[] = [];
  let value = 0, shift = 0;
  for (const digit of segment) {
    const bits = VALUE.get(digit);
    if (bits === undefined) return numbers; // no map of ours: what was read stands
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
