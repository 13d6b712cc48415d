/** Line and column for findings that were made where the text was no longer at hand, such as the policy's. */
import type { ErrorDetail } from "../../sdk/errors.ts";
import type { DocumentLimits } from "../parse/document_limits.ts";
import { parsePlanText } from "../parse/parse.ts";
import { parsePath } from "../value_path.ts";

/**
 * Returns the details with the place each has in the text of the plan; those that have one already stay as they are.
 * @param limits Those that the text was read with.
 */
export async function withPlaces<T extends ErrorDetail>(
  details: readonly T[],
  text: string,
  limits?: DocumentLimits,
): Promise<(T & ErrorDetail)[]> {
  const isPlaced = ({ line, file }: ErrorDetail) => line !== undefined || file !== undefined;
  if (details.every(isPlaced)) return [...details];
  const { locate } = await parsePlanText(text, limits ? { limits } : {}); // it was read before: it is a plan
  return details.map((detail) => {
    const path = isPlaced(detail) ? undefined : parsePath(detail.path);
    if (path === undefined) return detail;
    return Object.assign({ path: detail.path, ...locate(path) }, detail);
  });
}
