/** `preamp replay`: replays a run that `--output-format json-trace` saved (src/docs/events.md#replay). */
import { createRuntime } from "../../app/runtime.ts";
import type { Recording, ReplayReport } from "../../runs/types.ts";
import { errorCode, errorMessage } from "../../sdk/errors.ts";
import { isObject } from "../../sdk/json.ts";
import { escapeUnprintable } from "../../text/escape.ts";
import { type Arguments, formatFlags, UsageError } from "../arguments.ts";
import type { Answer, Command } from "../commands.ts";
import { TERMINAL } from "../terminal_caller.ts";
import { EXIT } from "../errors.ts";
import { readInput } from "../../settings/paths.ts";
import { reportedSettings, withSettings } from "../settings.ts";
import { styleOf } from "../terminal/format.ts";
import type { Io } from "../terminal/io.ts";

export const command: Command = {
  usage: "replay [flags] <file>",
  summary:
    "Runs a saved run again on the recorded answers of models and tools, and says what the agent does " +
    "differently. `-` is stdin.",
  flags: withSettings(formatFlags({ help: "text (default), or {equal, first_difference}" })),
  details: () =>
    `No provider, tool or hook is called. The calls (name and input), their order, the status and the final text are compared. Exit codes: 0 equal, 1 different; the first difference is printed.

  preamp run --output-format json-trace "What is 6 × 7?" > run.json
  preamp replay run.json
`,
  run,
};

async function run(args: Arguments, io: Io): Promise<Answer> {
  const [name, ...more] = args.rest;
  if (name === undefined || more.length > 0) {
    throw new UsageError(`Cannot replay: name one file, not ${args.rest.length}`);
  }
  const { policy, home, sources } = await reportedSettings(args, io, { sources: true });
  const input = await readInput(name, io);
  const recording = readRecording(input);
  await using runtime = createRuntime({ policy, home, sources });
  const report = await runtime.runs.replay(TERMINAL, recording).catch((error) => {
    if (errorCode(error) !== undefined) throw error;
    const fact = `a value in it cannot be used: ${errorMessage(error)}`; // only its structure was checked
    throw new UsageError(`Cannot replay ${input.name}: ${fact}`, { cause: error });
  });
  const text = reportText(recording, report, io);
  return { data: report, text, exit: report.equal ? EXIT.done : EXIT.failed };
}

/** Returns the recording in a text. @throws {UsageError} if it is not a recording. */
function readRecording({ name, text }: { name: string; text: string }): Recording {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch (error) {
    throw new UsageError(`Cannot replay ${name}: it is not JSON: ${errorMessage(error)}`, { cause: error });
  }
  if (isObject(data) && isObject(data.run) && Array.isArray(data.events) && isObject(data.replay)) {
    const { events, replay } = data;
    const whole = isObject(replay.plan) && Array.isArray(replay.history) && isObject(replay.session_state);
    if (whole && events.length > 0 && events.every(isEntry)) {
      return data as unknown as Recording; // the structure was checked
    }
  }
  throw new UsageError(
    `Cannot replay ${name}: it must be the output of preamp run --output-format json-trace: {run, events, replay}`,
  );
}

function isEntry(value: unknown): boolean {
  return isObject(value) && typeof value.event === "string" && typeof value.session_id === "string" &&
    typeof value.ts === "string" && isObject(value.data);
}

function reportText({ run, events }: Recording, { first_difference }: ReplayReport, io: Io): string {
  const { green, red } = styleOf(io.out);
  const id = escapeUnprintable(run.id);
  return first_difference
    ? `${red("different")}: ${escapeUnprintable(first_difference.message)}\n`
    : `${green("equal")}: ${events.length} entries of run ${id}\n`;
}
