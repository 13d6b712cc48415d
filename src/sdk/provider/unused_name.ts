/** Room for a number at the end of a name; vendors take names of up to 64 characters. */
const MAX_BASE_CHARS = 60;

/**
 * Returns a name that is not in use, and adds it to those in use: the wanted one, or its beginning with a
 * number, such as `search_2`.
 *
 * @param wanted At most 64 characters.
 * @param used Names in use.
 */
export function unusedName(wanted: string, used: Set<string>): string {
  let name = wanted;
  for (let count = 2; used.has(name); count++) name = `${wanted.slice(0, MAX_BASE_CHARS)}_${count}`;
  used.add(name);
  return name;
}
