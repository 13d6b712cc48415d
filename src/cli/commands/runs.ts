/** `preamp runs`: lists the stored runs, the newest first. */
import type { Run } from "../../runs/types.ts";
import { type Arguments, formatFlags } from "../arguments.ts";
import type { Command } from "../commands.ts";
import { TERMINAL } from "../terminal_caller.ts";
import { LAST_FLAG, lastOf, listText, timeText, withStoredRuns } from "../run_session.ts";
import { settingFlags } from "../settings.ts";
import { cutToWidth } from "../terminal/format.ts";
import { dollars, messageText } from "../terminal/progress_lines.ts";

export const command: Command = {
  usage: "runs [flags]",
  summary: "Lists the stored runs of this user, the newest first.",
  flags: [
    { name: "session", value: "ID", help: "only the runs of a session; preamp sessions lists them" },
    LAST_FLAG,
    ...settingFlags(["store"]),
    ...formatFlags({ help: "a table (default), or {data} with the run objects" }),
  ],
  details: () => "Runs without --session are not stored. Runs of a server belong to its keys.\n",
  max_arguments: 0,
  async run(args, io) {
    const filter = filterOf(args);
    const wanted = lastOf(args);
    return await withStoredRuns(args, io, async ({ runs }) => {
      const data: Run[] = [];
      let cursor: string | undefined;
      do {
        const page = await runs.list(TERMINAL, { ...filter, ...(cursor === undefined ? {} : { cursor }) });
        data.push(...page.data);
        cursor = page.next_cursor ?? undefined;
      } while (cursor !== undefined && data.length < wanted);
      const shown = data.slice(0, wanted);
      const heads = ["run", "began (UTC)", "status", "tokens", "cost", "session", "prompt"];
      const room = io.out.terminal ? Math.max(20, io.out.columns() - 134) : 200;
      const table = listText([heads, ...shown.map((run) => rowOf(run, room))], io.out);
      return { data: { data: shown }, text: shown.length === 0 ? "No run is stored\n" : table };
    });
  },
};

function filterOf(args: Arguments): { session_id?: string } {
  const session_id = args.value("session");
  return session_id === undefined ? {} : { session_id };
}

function rowOf(
  { id, created_at, status, stop_reason, usage, session_id, title = "" }: Run,
  room: number,
): string[] {
  const outcome = status === "incomplete" ? `${status} (${stop_reason})` : status;
  const tokens = usage.total_tokens.toLocaleString("en-US");
  const cost = usage.cost_usd === null ? "-" : dollars(usage.cost_usd);
  const prompt = cutToWidth(messageText(title), room);
  return [id, timeText(created_at), outcome, tokens, cost, session_id, prompt];
}
