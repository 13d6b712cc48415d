/** Line and column for findings that were made where the text was no longer at hand, such as the policy's. */
import type { ErrorDetail } from "../sdk/errors.ts";
import { parsePlanText } from "./parse.ts";
import { parsePath } from "./path.ts";

/** Returns the details with the place each has in the text of the plan; those that have one already stay as they are. */
export async function withPlaces<T extends ErrorDetail>(
  details: readonly T[],
  text: string,
): Promise<(T & ErrorDetail)[]> {
  if (details.every((detail) => detail.line !== undefined)) return [...details];
  const { locate } = await parsePlanText(text); // it was read before: it is a plan
  return details.map((detail) => {
    const path = detail.line === undefined ? parsePath(detail.path) : undefined;
    if (path === undefined) return detail;
    return Object.assign({ path: detail.path, ...locate(path) }, detail);
  });
}
