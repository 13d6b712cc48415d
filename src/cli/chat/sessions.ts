/** The conversations in the store, by name. */
import type { Runtime } from "../../app/types.ts";
import type { SessionObject } from "../../runs/types.ts";
import { storedSessions } from "../run_session.ts";

/** A session with its name: the one it was given, or its first message. */
export interface NamedSession {
  readonly id: string;
  readonly name: string;
  readonly session: SessionObject;
}

/** Resolves to the sessions of the terminal, the last used one first; without those of sub-agents. */
export async function namedSessions(runtime: Pick<Runtime, "runs">): Promise<NamedSession[]> {
  return (await storedSessions(runtime)).map((session) => {
    const { id, metadata: { name } } = session;
    return { id, name: typeof name === "string" ? name : id, session };
  });
}
