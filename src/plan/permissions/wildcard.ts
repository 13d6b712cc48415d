/** Matches `*` and `?` in names, in time proportional to the product of the lengths. */

/** Returns true if a name contains a wildcard. */
export function hasWildcard(pattern: string): boolean {
  return pattern.includes("*") || pattern.includes("?");
}

/** Returns true if all of `text` matches the pattern: `*` is any number of characters, `?` is one. */
export function matchesWildcard(pattern: string, text: string): boolean {
  let at = 0;
  let place = 0;
  let star = -1;
  let taken = 0;
  while (at < text.length) {
    if (pattern[place] === "*") {
      star = place++;
      taken = at;
    } else if (place < pattern.length && (pattern[place] === "?" || pattern[place] === text[at])) {
      at++;
      place++;
    } else if (star >= 0) {
      place = star + 1; // let the last star match one more character
      at = ++taken;
    } else return false;
  }
  while (pattern[place] === "*") place++;
  return place === pattern.length;
}
