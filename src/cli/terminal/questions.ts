/** Asks a person about the calls that need an approval. */
import type { Approval, CreateOptions } from "../../runs/types.ts";
import { escapeUnprintable } from "../../text/escape.ts";
import { type Style, wrapText } from "./format.ts";
import type { Io, Output } from "./io.ts";
import { duration, formatValue } from "./progress_lines.ts";
import type { Choice, PersonInput } from "./line_input.ts";
import { diffLine, inputLines } from "./tool_lines.ts";

/** Milliseconds. A faster answer was typed before the question was displayed, and is ignored. */
const TYPED_AHEAD_MS = 250;

/** Milliseconds. A question that ends sooner says so. */
const SHOWN_BELOW_MS = 3_600_000;

/** Decisions with a meaning of their own; every other option of a question is offered with its label. */
const PLAIN: ReadonlySet<string> = new Set(["allow", "allow once", "deny"]);

/** What a person may answer. */
type Answer = "once" | "run" | "deny" | { readonly option: string } | {
  readonly rule: string;
  readonly scope: "conversation" | "folder";
};

/** Calls that are allowed for longer than one answer. */
export interface LastingAnswers {
  /** Whether rules of the folder can be kept. */
  readonly keeps_folder: boolean;
  /** Returns the rules that allow what an approval asks; undefined: none does. */
  allowedBy(approval: Approval): string | undefined;
  /** Returns a rule that would allow such calls; null: none can say it. */
  proposes(approval: Approval): string | null;
  /** Adds a rule. */
  add(rule: string, scope: "conversation" | "folder"): Promise<void>;
}

/** Decides approvals; see {@link CreateOptions}. */
export type Ask = NonNullable<CreateOptions["ask"]>;

/** Collaborators of {@link questionsOf}. */
export interface QuestionsDeps {
  readonly io: Pick<Io, "monotonic">;
  readonly input: PersonInput;
  /** Where questions are displayed. */
  readonly output: Pick<Output, "write" | "columns">;
  readonly style: Style;
  /** Keeps all other text back until the returned function is called. */
  hold(): () => void;
  /** Called when the person leaves a question, which stops the run. Default: the question is not answered. */
  leave?(): void;
  /** Called with an approval whose call is displayed whole. */
  displayed?(approval: Approval): void;
  /** Calls that are allowed for longer. Default: none can be. */
  readonly lasting?: LastingAnswers;
  /** Returns milliseconds since the epoch. Default: the system's clock. */
  now?(): number;
}

/**
 * Returns the function that answers the approvals of one run, one question at a time. Without a person it
 * resolves to null: the call is denied.
 */
export function questionsOf(deps: QuestionsDeps): Ask {
  if (!deps.input.asks) return () => Promise.resolve(null);
  const allowed = new Set<string>();
  let previous: Promise<unknown> = Promise.resolve();
  return (approval, signal) => {
    const answer = previous.then(async () => {
      if (signal.aborted) return null;
      if (allowed.has(kindOf(approval))) return { decision: "allow", reason: "allowed for this run" };
      const rule = deps.lasting?.allowedBy(approval);
      if (rule !== undefined) return { decision: "allow", reason: `allowed by ${rule}` };
      const decision = await askOne(approval, signal, deps);
      if (decision === "run") allowed.add(kindOf(approval));
      return decision === "run" ? { decision: "allow" } : decision;
    });
    previous = answer.catch(() => {}); // the caller handles a rejection
    return answer;
  };
}

/**
 * Returns what an answer for the run holds for: calls of the same tool, or the same command, because a tool
 * that runs commands can do anything.
 */
function kindOf({ tool_name, action, hook_name, args_hash, tool_input }: Approval): string {
  const is_command = tool_input !== null && "command" in tool_input;
  return JSON.stringify([hook_name, action, tool_name, is_command || tool_name === null ? args_hash : null]);
}

async function askOne(
  approval: Approval,
  signal: AbortSignal,
  { io, input, output, style, hold, leave, displayed, lasting, now = Date.now }: QuestionsDeps,
): Promise<{ decision: string; reason?: string } | "run" | null> {
  const release = hold();
  try {
    displayed?.(approval);
    output.write(questionText(approval, style, { now: now(), columns: output.columns() }));
    const choices = choicesOf(approval, lasting);
    while (true) {
      const since = io.monotonic();
      const answer = await input.choose(approval.limit ? "Go further?" : "Allow it?", choices, signal);
      if (signal.aborted) return null;
      if (answer !== null && io.monotonic() - since < TYPED_AHEAD_MS) {
        output.write("This answer was typed before the question was displayed. Please answer again.\n");
        continue;
      }
      if (answer === null) {
        leave?.();
        return leave ? { decision: "deny" } : null;
      }
      if (answer === "run") return "run";
      if (answer === "once") return { decision: "allow" };
      if (answer !== "deny" && "option" in answer) return { decision: answer.option };
      if (answer !== "deny") {
        await lasting?.add(answer.rule, answer.scope);
        return { decision: "allow", reason: `allowed by ${answer.rule}` };
      }
      if (approval.limit) return { decision: "deny" };
      const reason = await input.line("Why not? The agent reads it (Enter: no reason)", signal);
      if (signal.aborted) return null;
      return reason?.trim() ? { decision: "deny", reason: reason.trim() } : { decision: "deny" };
    }
  } finally {
    release();
  }
}

function choicesOf(approval: Approval, lasting: LastingAnswers | undefined): Choice<Answer>[] {
  const { tool_name, tool_input, limit } = approval;
  if (limit) {
    return [
      { value: "once", label: `Raise ${limit.name} by as much again`, letter: "y" },
      { value: "deny", label: "Stop here", letter: "n" },
    ];
  }
  const kind = tool_name === null
    ? "this step"
    : tool_input !== null && "command" in tool_input
    ? "exactly this command"
    : formatValue(tool_name);
  const offered = approval.options
    .map((option) => typeof option === "string" ? option : option.label)
    .filter((label) => !PLAIN.has(label.toLowerCase()));
  const rule = lasting?.proposes(approval) ?? null;
  const calls = rule === null ? "" : formatValue(rule.slice(rule.indexOf(":") + 1));
  return [
    { value: "once", label: "Allow once", letter: "y" },
    { value: "run", label: `Allow ${kind} until this answer ends`, letter: "r" },
    ...rule === null || offered.length > 0 ? [] : [
      {
        value: { rule, scope: "conversation" },
        label: `Allow ${calls} until you leave`,
        letter: "s",
      } as const,
    ],
    ...offered.map((option, at) => ({
      value: { option },
      label: formatValue(option),
      ...(at === 0 ? { letter: "s" } : {}),
    })),
    ...rule === null || !lasting?.keeps_folder ? [] : [
      {
        value: { rule, scope: "folder" },
        label: `Always allow ${calls} in this folder`,
        letter: "f",
      } as const,
    ],
    { value: "deny", label: "Deny, with a reason", letter: "n" },
  ];
}

/** Returns the text of a question, with every unprintable character escaped. */
function questionText(
  approval: Approval,
  style: Style,
  { now, columns }: { now: number; columns: number },
): string {
  const { action, prompt, tool_name, tool_input, risk_level, hook_name, expires_at, pattern } = approval;
  const [first = "", ...more] = prompt.split("\n").map((line) => style.bold(escapeUnprintable(line)));
  const left_ms = Date.parse(expires_at) - now;
  const facts = [
    ...(prompt === `Allow ${tool_name}?` ? [] : [formatValue(tool_name ?? action)]),
    `risk ${formatValue(risk_level)}`,
    `asked by ${formatValue(hook_name ?? "the runtime")}`,
    ...(pattern === undefined ? [] : [`also for ${formatValue(pattern)}`]),
    ...(left_ms > SHOWN_BELOW_MS ? [] : [
      `${approval.default === "allow" ? "allowed" : "denied"} in ${
        duration(Math.max(0, left_ms))
      } if unanswered`,
    ]),
  ];
  const lines = (changeLines(approval, style) ?? inputLines(tool_input, style)).map((line) => `  ${line}\n`);
  const head = [`${style.yellow("?")} ${first}`, ...more];
  head.push(`${head.pop()} ${style.dim(facts.join(", "))}`);
  return `${head.flatMap((line) => wrapText(line, columns - 2)).join("\n  ")}\n${lines.join("")}`;
}

/** Characters of a preview from which on it may be cut. */
const WHOLE_PREVIEW_CHARS = 20_000;

/** Returns the change of one file as its tool previews it; null: what the input says must be shown. */
function changeLines({ tool_input, preview = "" }: Approval, style: Style): string[] | null {
  const paths = ["path", "file_path"].flatMap((name) => {
    const path = tool_input?.[name];
    return typeof path === "string" ? [path] : [];
  });
  const at = preview.search(/^@@ /m);
  if (paths.length !== 1 || at < 0 || preview.length >= WHOLE_PREVIEW_CHARS) return null;
  const diff = preview.slice(at).trimEnd().split("\n");
  if (diff.some((line) => !/^[ +\-@\\]/.test(line))) return null; // more than one file
  const printed = (line: string) => escapeUnprintable(line.replaceAll("\t", "  "));
  return [printed(paths[0]!), ...diff.map((line) => diffLine(printed(line), style))];
}
