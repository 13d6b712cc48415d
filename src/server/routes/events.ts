import type { Caller } from "../../runs/types.ts";
import { hasCode } from "../../sdk/errors.ts";
import { type Handler, type HandlerContext, pathId } from "../context.ts";
import { jsonResponse, noContent } from "../responses.ts";
import { eventStream } from "../streaming/run_events.ts";
import { lastEventId } from "../streaming/sse.ts";
import { preferredType } from "../negotiation.ts";
import { problemResponse, toProblem } from "../problems.ts";
import { checkListQuery, type Query } from "../body/validation.ts";

const FORMS = ["application/json", "text/event-stream", "application/x-ndjson"] as const;

/** Handles `GET /v1/runs/{id}/events`: a list of the existing entries, or a stream until `run:end`. */
export const runEvents: Handler = async (context, caller) => {
  const { headers } = context.req.raw;
  const form = preferredType(headers.get("accept"), FORMS);
  const query = await checkListQuery("EventsQuery", context);
  try {
    if (form === "application/json") return await listEvents(context, caller, query);
    // On reconnection a browser repeats the URL and adds the header, so the header is newer than `after`.
    return await streamEvents(context, caller, form, lastEventId(headers) ?? query.after ?? 0);
  } catch (error) {
    if (!hasCode(error, "log_expired")) throw error;
    const run = await context.env.server.runtime.runs.get(caller, pathId(context));
    return problemResponse(toProblem(error), context.env.request_id, { run });
  }
};

async function listEvents(
  context: HandlerContext,
  caller: Caller,
  query: Query<"EventsQuery">,
): Promise<Response> {
  const { after = 0, cursor = after, limit = context.env.max_page_limit } = query;
  const run_id = pathId(context);
  const data = await context.env.server.runtime.runs.events(caller, run_id, { after: cursor, limit });
  const last = data.at(-1);
  const more = last !== undefined && data.length === limit && last.event !== "run:end";
  return jsonResponse({ data, next_cursor: more ? String(last.seq) : null }, 200, {
    "preamp-run-id": run_id,
  });
}

async function streamEvents(
  context: HandlerContext,
  caller: Caller,
  type: "text/event-stream" | "application/x-ndjson",
  after: number,
): Promise<Response> {
  const { runs } = context.env.server.runtime;
  const run_id = pathId(context);
  // Read before the stream starts, so that an unknown run or an expired log is a problem response.
  const [next] = await runs.events(caller, run_id, { after, limit: 1 });
  const complete = next === undefined && (await runs.get(caller, run_id)).ended_at !== null;
  // 204 stops an EventSource from reconnecting after the end (WHATWG HTML §9.2.2).
  if (complete && type === "text/event-stream") return noContent({ "preamp-run-id": run_id });
  return eventStream(context.env, caller, { run_id, type, after });
}
