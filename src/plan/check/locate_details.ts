/** Adds line and column to findings that were made without the text, such as the policy's. */
import type { ErrorDetail } from "../../sdk/errors.ts";
import type { DocumentLimits } from "../parse/document_limits.ts";
import { parsePlanText } from "../parse/parse.ts";
import { parsePath } from "../value_path.ts";

/**
 * Returns the details with their places in the text of the plan. Details that have a place are not changed.
 *
 * @param limits The limits that the text was parsed with.
 */
export async function withPlaces<T extends ErrorDetail>(
  details: readonly T[],
  text: string,
  limits?: DocumentLimits,
): Promise<(T & ErrorDetail)[]> {
  const isPlaced = ({ line, file }: ErrorDetail) => line !== undefined || file !== undefined;
  if (details.every(isPlaced)) return [...details];
  const { locate } = await parsePlanText(text, limits ? { limits } : {}); // the text was parsed before, so it is valid
  return details.map((detail) => {
    const path = isPlaced(detail) ? undefined : parsePath(detail.path);
    if (path === undefined) return detail;
    return Object.assign({ path: detail.path, ...locate(path) }, detail);
  });
}
