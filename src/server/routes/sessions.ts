/** Sessions as resources. */
import { readJsonBody } from "../body/parse_body.ts";
import { type Handler, jsonResponse, noContent } from "../context.ts";
import { checkListQuery } from "../paging.ts";
import { pathId } from "./runs.ts";
import { checkBody } from "../body/validation.ts";

/** `GET /v1/sessions`. */
export const listSessions: Handler = async (call, caller) => {
  const page = await checkListQuery("PageQuery", call);
  return jsonResponse(await call.env.server.runtime.runs.sessions.list(caller, page));
};

/** `GET /v1/sessions/{id}`. */
export const getSession: Handler = async (call, caller) =>
  jsonResponse(await call.env.server.runtime.runs.sessions.get(caller, pathId(call)));

/** `DELETE /v1/sessions/{id}`. */
export const removeSession: Handler = async (call, caller) => {
  await call.env.server.runtime.runs.sessions.remove(caller, pathId(call));
  return noContent();
};

/** `POST /v1/sessions/{id}/fork`; an empty body forks at the end. */
export const forkSession: Handler = async (call, caller) => {
  const { body, server: { runtime, basePath, clock } } = call.env;
  const given = await readJsonBody(call.req.raw, body, clock);
  const options = await checkBody("ForkRequest", given === undefined ? {} : given);
  const fork = await runtime.runs.sessions.fork(caller, pathId(call), options);
  return jsonResponse(fork, 201, { location: `${basePath}/v1/sessions/${encodeURIComponent(fork.id)}` });
};

/** `GET /v1/sessions/{id}/runs`, newest first. */
export const listSessionRuns: Handler = async (call, caller) => {
  const { runs } = call.env.server.runtime;
  const page = await checkListQuery("PageQuery", call);
  const { id } = await runs.sessions.get(caller, pathId(call)); // an unknown session is no empty list
  return jsonResponse(await runs.list(caller, { ...page, session_id: id }));
};

/** `GET /v1/sessions/{id}/messages`: the full history, never compacted; paged only when asked to. */
export const listMessages: Handler = async (call, caller) => {
  const { cursor = 0, limit } = await checkListQuery("MessagesQuery", call);
  const messages = await call.env.server.runtime.runs.sessions.messages(caller, pathId(call));
  const end = limit === undefined ? messages.length : cursor + limit;
  return jsonResponse({
    data: messages.slice(cursor, end),
    next_cursor: end < messages.length ? String(end) : null,
  });
};
