import type { Caller } from "../../runs/types.ts";
import { hasCode } from "../../sdk/errors.ts";
import type { Handler, RequestContext } from "../context.ts";
import { type Answer, jsonAnswer, noContent } from "../answers.ts";
import { eventStream } from "../streaming/run_event_stream.ts";
import { lastEventId } from "../streaming/sse_format.ts";
import { preferredType } from "../negotiation.ts";
import { problemAnswer, toProblem } from "../problems.ts";
import { checkListQuery, type Query } from "../body/validation.ts";

const FORMS = ["application/json", "text/event-stream", "application/x-ndjson"] as const;

/** Handles `GET /v1/runs/{id}/events`: a list of the existing entries, or a stream until `run:end`. */
export const runEvents: Handler = async (context, caller) => {
  const { headers } = context.request;
  const form = preferredType(headers.get("accept"), FORMS);
  const query = await checkListQuery("EventsQuery", context);
  try {
    if (form === "application/json") return await listEvents(context, caller, query);
    // On reconnection a browser repeats the URL and adds the header, so the header is newer than `after`.
    return await streamEvents(context, caller, form, lastEventId(headers) ?? query.after ?? 0);
  } catch (error) {
    if (!hasCode(error, "log_expired")) throw error;
    const run = await context.server.runtime.runs.get(caller, context.param("id"));
    return problemAnswer(toProblem(error), context.request_id, { run });
  }
};

async function listEvents(
  context: RequestContext,
  caller: Caller,
  query: Query<"EventsQuery">,
): Promise<Answer> {
  const { after = 0, cursor = after, limit = context.max_page_limit } = query;
  const run_id = context.param("id");
  const { runs } = context.server.runtime;
  const data = await runs.events(caller, run_id, { after: cursor, limit });
  const last = data.at(-1);
  if (last === undefined || last.event === "run:end") return jsonAnswer({ data, next_cursor: null });
  const more = await runs.events(caller, run_id, { after: last.seq, limit: 1 }); // a page of large entries is short
  return jsonAnswer({ data, next_cursor: more.length > 0 ? String(last.seq) : null });
}

async function streamEvents(
  context: RequestContext,
  caller: Caller,
  type: "text/event-stream" | "application/x-ndjson",
  after: number,
): Promise<Answer> {
  const { runs } = context.server.runtime;
  const run_id = context.param("id");
  context.server.open_streams.check(caller.name, context.streams);
  // Read before the stream starts, so that an unknown run or an expired log is a problem response.
  const [next] = await runs.events(caller, run_id, { after, limit: 1 });
  const complete = next === undefined && (await runs.get(caller, run_id)).ended_at !== null;
  // 204 stops an EventSource from reconnecting after the end (WHATWG HTML §9.2.2).
  if (complete && type === "text/event-stream") return noContent();
  return eventStream(context, caller, { run_id, type, after });
}
