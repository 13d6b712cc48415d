/** Routes of sessions. */
import { readJsonBody } from "../body/parse_body.ts";
import { jsonAnswer, noContent } from "../answers.ts";
import { checkBody, checkListQuery } from "../body/validation.ts";
import { ok, type Route } from "./route.ts";

/** The routes. */
export const SESSION_ROUTES: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/sessions",
    id: "listSessions",
    summary: "List sessions",
    query: "PageQuery",
    answers: ok("a page of sessions", "SessionList"),
    async handle(context, caller) {
      const page = await checkListQuery("PageQuery", context);
      return jsonAnswer(await context.server.runtime.runs.sessions.list(caller, page));
    },
  },
  {
    method: "GET",
    path: "/v1/sessions/{id}",
    id: "getSession",
    summary: "Read a session",
    answers: ok("the session", "Session"),
    handle: async (context, caller) =>
      jsonAnswer(await context.server.runtime.runs.sessions.get(caller, context.param("id"))),
  },
  {
    method: "DELETE",
    path: "/v1/sessions/{id}",
    id: "deleteSession",
    summary: "Delete a session and the sessions of its sub-agents; its runs remain",
    answers: { 204: { description: "deleted" } },
    codes: ["session_busy", "storage_full"],
    async handle(context, caller) {
      await context.server.runtime.runs.sessions.remove(caller, context.param("id"));
      return noContent();
    },
  },
  {
    method: "POST",
    path: "/v1/sessions/{id}/fork",
    id: "forkSession",
    summary: "Create a new session with the history of this one up to the end of a turn, or before a run",
    body: "ForkRequest",
    body_optional: true,
    answers: {
      201: {
        description: "the new session; Location is its URL",
        content: { "application/json": "Session" },
      },
    },
    codes: ["storage_full"],
    async handle(context, caller) {
      const { runtime, basePath } = context.server;
      const options = await checkBody("ForkRequest", await readJsonBody(context, {}));
      const fork = await runtime.runs.sessions.fork(caller, context.param("id"), options);
      return jsonAnswer(fork, 201, { location: `${basePath}/v1/sessions/${encodeURIComponent(fork.id)}` });
    },
  },
  {
    method: "GET",
    path: "/v1/sessions/{id}/runs",
    id: "listSessionRuns",
    summary: "List the runs of a session, newest first",
    query: "PageQuery",
    answers: ok("a page of runs", "RunList"),
    async handle(context, caller) {
      const { runs } = context.server.runtime;
      const page = await checkListQuery("PageQuery", context);
      const { id } = await runs.sessions.get(caller, context.param("id")); // throws for an unknown session
      return jsonAnswer(await runs.list(caller, { ...page, session_id: id }));
    },
  },
  {
    method: "GET",
    path: "/v1/sessions/{id}/messages",
    id: "listSessionMessages",
    summary: "Read the full history of a session, never compacted",
    query: "MessagesQuery",
    answers: ok("the messages", "MessageList"),
    async handle(context, caller) {
      const page = await checkListQuery("MessagesQuery", context);
      const { sessions } = context.server.runtime.runs;
      return jsonAnswer(await sessions.messages(caller, context.param("id"), page));
    },
  },
];
