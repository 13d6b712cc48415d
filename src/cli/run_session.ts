/** The session that `preamp run` continues, and the store that keeps it. */
import type { Runtime } from "../app/types.ts";
import type { Run, SessionObject } from "../runs/types.ts";
import { type Arguments, UsageError } from "./arguments.ts";
import { TERMINAL } from "./commands.ts";
import { type OpenedStore, openSettingsStore, type Settings } from "./settings.ts";
import { shellWord } from "./terminal/format.ts";

/** Opens the store: with `--session` it lasts, so that the conversation can be continued. */
export async function openRunStore(args: Arguments, settings: Settings): Promise<OpenedStore> {
  const id = args.value("session");
  if (id !== undefined && settings.store === "memory") {
    throw new UsageError(
      `Cannot continue session ${JSON.stringify(id)}: the store is memory, which ends with its process; ` +
        "leave out --store memory",
    );
  }
  return await openSettingsStore(settings, id !== undefined);
}

/**
 * Returns the id of the session to continue; undefined for a new one.
 * @throws {UsageError} for `last` when there is no session.
 */
export async function sessionOf(text: string | undefined, { runs }: Runtime): Promise<string | undefined> {
  if (text === undefined || text === "new") return undefined;
  if (text !== "last") return text;
  let last: SessionObject | undefined;
  let cursor: string | undefined;
  do {
    const page = await runs.sessions.list(TERMINAL, cursor === undefined ? {} : { cursor });
    for (const session of page.data) {
      if (session.parent_id !== null) continue; // of a sub-agent
      if (last === undefined || session.last_activity > last.last_activity) last = session;
    }
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
  if (last) return last.id;
  throw new UsageError(
    "Cannot continue the last session: no session is stored; begin one with --session new",
  );
}

/** Returns the command that continues the session of a run. A URL of a store may have a password: `…`. */
export function continuation(args: Arguments, { session_id }: Pick<Run, "session_id">): string {
  const places = ["config", "store"].flatMap((name) => {
    const value = args.value(name);
    return value === undefined ? [] : [`--${name}`, value.includes("://") ? "…" : shellWord(value)];
  });
  return ["preamp run", ...places, "--session", session_id, '"…"'].join(" ");
}
