/** Flags, plan files and runtime that the `plan` commands share. */
import { createRuntime } from "../../app/runtime.ts";
import type { Runtime } from "../../app/types.ts";
import { type Arguments, type Flag, UsageError } from "../arguments.ts";
import type { Io } from "../terminal/io.ts";
import { formatFlags } from "../output_format.ts";
import { readSettings } from "../settings.ts";
import { styleOf } from "../terminal/format.ts";

/** `-p FILE`, as `preamp run` takes it. */
export const PLAN_FLAG: Flag = {
  name: "plan",
  short: "p",
  value: "FILE",
  many: true,
  help: "plan file; several are merged from left to right",
};

/** `-m PROVIDER/MODEL`. */
export const MODEL_FLAG: Flag = {
  name: "model",
  short: "m",
  value: "PROVIDER/MODEL",
  help: "run on this model in place of the plan's, such as anthropic/claude-sonnet-5-5",
};

/** `--output-format` and `--json`. */
export const FORMAT_FLAGS: readonly Flag[] = formatFlags({
  help: "a table (default), or the object that the HTTP API answers",
});

/** Returns the field `model` of a request; empty without `-m`. */
export function modelOf(args: Arguments): { model?: string } {
  const model = args.value("model");
  return model === undefined ? {} : { model };
}

/** Returns the files of `-p` and of the arguments. @throws {UsageError} if there are no files. */
export function planNames(args: Arguments, verb: string): string[] {
  const names = [...args.all("plan"), ...args.rest];
  if (names.length === 0) throw new UsageError(`Cannot ${verb} a plan: no file was named`);
  return names;
}

/**
 * Calls `use` with a runtime on the settings of the command line, and closes the runtime afterwards.
 * @param options `overridden`: source overrides of `preamp source add` apply, as in a run.
 */
export async function withRuntime<T>(
  args: Arguments,
  io: Io,
  use: (runtime: Runtime) => Promise<T>,
  { overridden = false }: { overridden?: boolean } = {},
): Promise<T> {
  const { policy, plans, home, sources, warnings } = await readSettings(args, io);
  const { yellow } = styleOf(io.err);
  for (const warning of warnings) io.err.write(`${yellow("warning:")} ${warning}\n`);
  const runtime = createRuntime({ policy, plans, home, ...(overridden ? { sources } : {}) });
  try {
    return await use(runtime);
  } finally {
    await runtime.close();
  }
}
