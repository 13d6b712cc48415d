/** How many items of a list one request may ask for. */
import { documentError } from "../plan/check/findings.ts";
import type { HandlerContext } from "./context.ts";
import { checkQuery, type Query } from "./body/validation.ts";

/** Queries of lists. */
type ListQuery = "EventsQuery" | "ListRunsQuery" | "MessagesQuery" | "PageQuery";

/**
 * Resolves to the query of a list.
 *
 * @throws {PreampError} `request_invalid` as {@link checkQuery}, and for a `limit` above the policy's `max_page_limit`.
 */
export async function checkListQuery<Name extends ListQuery>(
  name: Name,
  call: HandlerContext,
): Promise<Query<Name>> {
  const query = await checkQuery(name, call.req.url);
  const { limit }: { limit?: number } = query;
  const { max_page_limit } = call.env;
  if (limit === undefined || limit <= max_page_limit) return query;
  const message = `Cannot read limit: must be at most ${max_page_limit}: received ${limit}`;
  throw documentError("request_invalid", "the query", [{ path: "limit", message }]);
}
