/** `preamp sessions`: lists the stored conversations, the last used one first. */
import type { Runtime } from "../../app/types.ts";
import type { SessionObject } from "../../runs/types.ts";
import { isObject } from "../../sdk/json.ts";
import { textOf } from "../../sdk/messages.ts";
import type { Message } from "../../sdk/types.ts";
import { formatFlags } from "../arguments.ts";
import type { Command } from "../commands.ts";
import { TERMINAL } from "../terminal_caller.ts";
import { LAST_FLAG, lastOf, listText, storedSessions, timeText, withStoredRuns } from "../run_session.ts";
import { settingFlags } from "../settings.ts";
import { cutToWidth } from "../terminal/format.ts";
import { messageText } from "../terminal/progress_lines.ts";

export const command: Command = {
  usage: "sessions [flags]",
  summary: "Lists the stored conversations of this user, the last used one first.",
  flags: [
    LAST_FLAG,
    ...settingFlags(["store"]),
    ...formatFlags({ help: "a table (default), or {data} with the sessions as the HTTP API answers them" }),
  ],
  details: () =>
    `preamp run --session ID and preamp chat --session ID continue one, --session last continues the first of the list.
Runs without --session are not stored.
`,
  max_arguments: 0,
  async run(args, io) {
    const wanted = lastOf(args);
    return await withStoredRuns(args, io, async (runtime) => {
      const data = (await storedSessions(runtime)).slice(0, wanted);
      const room = io.out.terminal ? Math.max(20, io.out.columns() - 52) : 200;
      const rows = await Promise.all(data.map(async (session) => [
        session.id,
        timeText(session.last_activity),
        String(session.run_count),
        cutToWidth(await titleOf(session, runtime), room),
      ]));
      const table = listText([["session", "last used (UTC)", "runs", "begins with"], ...rows], io.out);
      return {
        data: { data },
        text: data.length === 0 ? "No session is stored; begin one with preamp run --session new\n" : table,
      };
    });
  },
};

/** Returns the name of a session, else its title, else the first text that a person wrote in it. */
async function titleOf({ id, metadata, title }: SessionObject, { runs }: Runtime): Promise<string> {
  if (typeof metadata.name === "string") return messageText(metadata.name);
  if (title) return messageText(title);
  const { data } = await runs.sessions.messages(TERMINAL, id, { limit: 4 });
  const first = data.find((message) => isObject(message) && message.role === "user") as Message | undefined;
  return messageText(first ? textOf(first.content) : "");
}
