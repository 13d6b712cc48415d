/** `GET /v1/runs/{id}/events`: the log of a run, as it comes or as it is. */
import type { Caller } from "../../runs/types.ts";
import { hasCode } from "../../sdk/errors.ts";
import { type Handler, type HandlerContext, jsonResponse, noContent } from "../context.ts";
import { eventStream } from "../streaming/run_events.ts";
import { lastEventId } from "../streaming/last_event_id.ts";
import { preferredType } from "../negotiation.ts";
import { problemResponse, toProblem } from "../problems.ts";
import { checkListQuery } from "../paging.ts";
import { pathId } from "./runs.ts";
import type { Query } from "../body/validation.ts";

const FORMS = ["application/json", "text/event-stream", "application/x-ndjson"] as const;
/** Answers the entries after a seq: a list of what is there, or a stream until `run:end`. */
export const runEvents: Handler = async (call, caller) => {
  const { headers } = call.req.raw;
  const form = preferredType(headers.get("accept"), FORMS);
  const query = await checkListQuery("EventsQuery", call);
  try {
    if (form === "application/json") return await listEvents(call, caller, query);
    // A browser that comes back repeats the URL and adds the header: the header is the later word.
    return await streamEvents(call, caller, form, lastEventId(headers) ?? query.after ?? 0);
  } catch (error) {
    if (!hasCode(error, "log_expired")) throw error;
    const run = await call.env.server.runtime.runs.get(caller, pathId(call));
    return problemResponse(toProblem(error), call.env.request_id, { run });
  }
};

async function listEvents(
  call: HandlerContext,
  caller: Caller,
  query: Query<"EventsQuery">,
): Promise<Response> {
  // by default the largest page: a list is asked for to see what is there
  const { after = 0, cursor = after, limit = call.env.max_page_limit } = query;
  const run_id = pathId(call);
  const data = await call.env.server.runtime.runs.events(caller, run_id, { after: cursor, limit });
  const last = data.at(-1);
  const more = last !== undefined && data.length === limit && last.event !== "run:end";
  return jsonResponse({ data, next_cursor: more ? String(last.seq) : null }, 200, {
    "preamp-run-id": run_id,
  });
}

async function streamEvents(
  call: HandlerContext,
  caller: Caller,
  type: "text/event-stream" | "application/x-ndjson",
  after: number,
): Promise<Response> {
  const { runs } = call.env.server.runtime;
  const run_id = pathId(call);
  // Asked before the status line goes out: an unknown run, or a log that is gone, is still a problem then.
  const [next] = await runs.events(caller, run_id, { after, limit: 1 });
  const nothingLeft = next === undefined && (await runs.get(caller, run_id)).ended_at !== null;
  // 204 is what tells an EventSource that read to the end not to come back (WHATWG HTML §9.2.2).
  if (nothingLeft && type === "text/event-stream") return noContent({ "preamp-run-id": run_id });
  return eventStream(call.env, caller, { run_id, type, after });
}
