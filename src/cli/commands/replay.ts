/** `preamp replay`: a run that was saved with `--output-format json-trace`, once more: loop and context for real, the rest from its log. */
import { createRuntime } from "../../app/runtime.ts";
import { escapeUnprintable } from "../../text/escape.ts";
import type { Recording } from "../../runs/types.ts";
import type { ReplayReport } from "../../runs/types.ts";
import { errorMessage } from "../../sdk/errors.ts";
import { isObject } from "../../sdk/json.ts";
import type { Arguments, Flag } from "../arguments.ts";
import { TERMINAL } from "../caller.ts";
import type { Command } from "../command.ts";
import { EXIT } from "../exit.ts";
import type { Io } from "../terminal/io.ts";
import { locate, readNamed } from "../files.ts";
import { formatFlags, wantsJson, writeJson } from "../output_format.ts";
import { policyFlags, readSettings, settingFlags } from "../settings.ts";
import { styleOf } from "../terminal/style.ts";
import { UsageError } from "../usage_error.ts";

const OWN_FLAGS: readonly Flag[] = [
  ...formatFlags({ help: "text (default), or {equal, first_difference}" }),
  ...settingFlags(),
];

/** The command. */
export const command: Command = {
  usage: "replay [flags] <file>",
  summary:
    "Replays a saved run: orchestrator and context run for real, everything else answers from its log. " +
    "`-` is stdin.",
  flags: [...OWN_FLAGS, ...policyFlags(OWN_FLAGS)],
  details: () =>
    `No provider, tool or hook is called. Exit code 0: equal; 1: not, and where the two part.

  preamp run --output-format json-trace "What is 6 × 7?" > run.json
  preamp replay run.json
`,
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  const [name, ...more] = args.rest;
  if (name === undefined || more.length > 0) {
    throw new UsageError(`Cannot replay: name one file: received ${args.rest.length}`);
  }
  const json = wantsJson(args);
  const { policy, home, sources } = await readSettings(args, io);
  const text = name === "-" ? await io.in.text() : await readNamed(locate(name, io.cwd), name);
  const recording = readRecording(name === "-" ? "stdin" : name, text);
  const runtime = createRuntime({ policy, home, sources });
  try {
    const report = await runtime.runs.replay(TERMINAL, recording);
    if (json) writeJson(io, report);
    else io.out.write(reportText(recording, report, io));
    return report.equal ? EXIT.done : EXIT.failed;
  } finally {
    await runtime.close();
  }
}

/** @throws {UsageError} when the text is no recording. */
function readRecording(what: string, text: string): Recording {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch (error) {
    throw new UsageError(`Cannot replay ${what}: it is not JSON: ${errorMessage(error)}`, { cause: error });
  }
  if (isObject(data) && isObject(data.run) && Array.isArray(data.events) && isObject(data.replay)) {
    const { events, replay } = data;
    const whole = isObject(replay.plan) && Array.isArray(replay.history) && isObject(replay.session_state);
    if (whole && events.length > 0 && events.every(isEntry)) {
      return data as unknown as Recording; // what it is made of was looked at; the rest is compared
    }
  }
  throw new UsageError(
    `Cannot replay ${what}: it must be what preamp run --output-format json-trace prints: {run, events, replay}`,
  );
}

function isEntry(value: unknown): boolean {
  return isObject(value) && typeof value.event === "string" && typeof value.session_id === "string" &&
    typeof value.ts === "string" && isObject(value.data);
}

function reportText({ run, events }: Recording, { first_difference }: ReplayReport, io: Io): string {
  const { bold, green, red } = styleOf(io.out);
  if (!first_difference) return `${green("equal")}: ${events.length} entries of run ${formatValue(run.id)}\n`;
  const { seq, path, recorded, replayed } = first_difference;
  const event = events[seq - 1]?.event ?? "";
  const place = `entry ${seq} ${event}${path === "" ? "" : ` ${path}`}`;
  return `${red("different")}: ${bold(formatValue(place))}\n  recorded: ${
    formatValue(recorded)
  }\n  replayed: ${formatValue(replayed)}\n`;
}

/** As JSON, on one line, no longer than a screen. */
function formatValue(value: unknown): string {
  const text = escapeUnprintable(typeof value === "string" ? value : JSON.stringify(value) ?? "nothing");
  return text.length <= 2_000 ? text : `${text.slice(0, 2_000)}…`;
}
