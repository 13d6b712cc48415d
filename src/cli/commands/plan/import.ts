/** `preamp plan import`: makes a plan of a file of another program. Starts and reaches nothing. */
import { type Arguments, formatFlags, UsageError } from "../../arguments.ts";
import type { Answer, Command } from "../../commands.ts";
import { planOfServers } from "../../mcp_json.ts";
import { locate, readInput, writeFailure } from "../../paths.ts";
import { planData } from "../../plan_files.ts";
import { planText } from "../../../plan/plan_text.ts";
import { escapeUnprintable } from "../../../text/escape.ts";
import { counted } from "../../terminal/format.ts";
import type { Io } from "../../terminal/io.ts";

export const command: Command = {
  usage: "plan import --mcp <file> [flags]",
  summary: "Makes a plan of the MCP servers in a file of another program, such as .mcp.json. Starts none.",
  flags: [
    { name: "mcp", value: "FILE", help: "file with mcpServers; `-` is stdin" },
    {
      name: "output",
      short: "o",
      value: "FILE",
      help: "file for the plan, which must not exist; default: stdout",
    },
    ...formatFlags({ help: "text (default), or {plan, servers, notes}" }),
  ],
  details: () =>
    `The plan grants what its servers need, and asks before each call. A server that cannot be reached is left out with a
warning. What has no counterpart is listed on stderr.

  preamp plan import --mcp .mcp.json -o servers.yaml
  preamp plan explain servers.yaml
  preamp run -p servers.yaml -m anthropic/claude-sonnet-5-5 "Which tools do you have?"
  preamp chat -p plans/coder.yaml -p servers.yaml
`,
  max_arguments: 0,
  run,
};

async function run(args: Arguments, io: Io): Promise<Answer> {
  const file = args.value("mcp");
  if (file === undefined) {
    throw new UsageError("Cannot import: name the file with --mcp FILE, such as .mcp.json");
  }
  const { name, text } = await readInput(file, io);
  const imported = planOfServers(await planData(name, text));
  if (imported === null) {
    throw new UsageError(
      `Cannot import ${JSON.stringify(name)}: it has no mcpServers: { name: { command or url } }`,
    );
  }
  const { plan, servers, notes } = imported;
  if (servers.length === 0) {
    throw new UsageError(`Cannot import ${JSON.stringify(name)}: ${notes.join("; ") || "it has no servers"}`);
  }
  const source = escapeUnprintable(name).slice(0, 200);
  const written = `# The MCP servers of ${source}: preamp plan import --mcp\n${await planText(plan)}`;
  const lines = notes.map((note) => `${escapeUnprintable(note)}\n`).join("");
  const output = args.value("output");
  if (output === undefined) return { data: imported, text: written, notes: lines };
  try {
    // a plan may have secrets of the file: only this user reads it
    await Deno.writeTextFile(locate(output, io.cwd), written, { createNew: true, mode: 0o600 });
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw writeFailure(output, error);
    throw new UsageError(
      `Cannot write ${JSON.stringify(output)}: it exists; remove it, or name another file`,
    );
  }
  return {
    data: imported,
    text: `Written: ${escapeUnprintable(output)}, with ${counted(servers.length, "server")}\n`,
    notes: lines,
  };
}
