/** A conversation in the terminal: each message is a run of one session. */
import type { Approval, Run, RunRequest } from "../../runs/types.ts";
import { errorCode, errorMessage, hasCode, type PreampError } from "../../sdk/errors.ts";
import { TERMINAL } from "../terminal_caller.ts";
import { EXIT, exitOfStatus } from "../errors.ts";
import type { Prompt } from "../../sdk/types.ts";
import { UsageError } from "../arguments.ts";
import { attachedFiles, filesText } from "../prompt_files.ts";
import { formatValue } from "../terminal/progress_lines.ts";
import { StopKey } from "../terminal/stop_key.ts";
import type { ChatOptions, ChatPlan, Conversation } from "./conversation.ts";
import { type Ask, questionsOf } from "../terminal/questions.ts";
import { runShellCommand, shellCommandOf } from "./shell_command.ts";
import { isCommand, runSlashCommand } from "./slash_commands.ts";

/** Characters of a message that name its session. */
const MAX_NAME = 60;

/** A conversation until the person leaves it. */
export class Chat implements Conversation {
  readonly options: ChatOptions;
  plan: ChatPlan;
  session_id: string | null;
  /** The last run; null before the first. */
  last_run: Run | null = null;
  /** Messages that wait for their turn. */
  readonly #waiting: string[];
  /** What the agent reads with the next message. */
  #carried: string[] = [];
  /** Stops the command of the person that runs; null: none does. */
  #command: AbortController | null = null;
  #current: { id: string | null; stop_key: StopKey; is_stopped: boolean } | null = null;
  /** Times that Ctrl-C was pressed at an empty input line. */
  #interrupts = 0;
  #is_leaving = false;
  /** Whether the person left during an answer. */
  #is_interrupted = false;

  constructor(options: ChatOptions) {
    this.options = options;
    this.plan = options.plan;
    this.session_id = options.session_id;
    this.#waiting = [...options.first_messages ?? []];
  }

  /** Runs the conversation. Resolves to the exit code. */
  async run(): Promise<number> {
    const { io, input, view } = this.options;
    const unlisten = io.onStop(() => {
      view.interrupted();
      this.#interrupt();
    });
    input.onInterrupt?.(() => {
      if (this.#command === null && this.#current === null) return false;
      this.#interrupt();
      return true;
    });
    try {
      while (!this.#is_leaving) {
        const waiting = this.#waiting.shift();
        if (waiting !== undefined && input.asks) view.message(waiting);
        const typed = waiting === undefined ? await input.read() : { text: waiting };
        if (typed === "end") return this.#exitCode();
        if (typed === "interrupt") this.#interruptInput();
        else if (typed.text.trim() !== "") await this.#take(typed.text.trim());
      }
      return this.#is_interrupted ? EXIT.interrupted : this.#exitCode();
    } finally {
      unlisten();
    }
  }

  /** Returns the exit code: in a pipe that of the last run. */
  #exitCode(): number {
    const run = this.last_run;
    if (run === null || this.options.input.asks) return EXIT.done;
    const is_denied = run.approvals.some(({ decision }) => decision === "unanswered");
    return is_denied ? EXIT.refused : exitOfStatus(run.status);
  }

  async #take(text: string): Promise<void> {
    const { view } = this.options;
    this.#interrupts = 0;
    try {
      const command = this.options.input.asks ? shellCommandOf(text) : null; // a pipe may hold anything
      if (command !== null) await this.#runCommand(command);
      else if (isCommand(text)) await runSlashCommand(text, this);
      else await this.send(text);
    } catch (error) {
      if (error instanceof UsageError) return view.error(error.message);
      if (errorCode(error) === undefined) throw error; // a bug
      const { details = [] } = error as Partial<PreampError>; // identified by its code
      if (details.length === 0) view.error(errorMessage(error));
      for (const { message, hint } of details) {
        view.error(hint === undefined ? message : `${message}: ${hint}`);
      }
    }
  }

  /** Ends the conversation after what is running. */
  leave(): void {
    this.#is_leaving = true;
  }

  continueIn(session_id: string, plan: ChatPlan = {}): void {
    this.session_id = session_id;
    this.last_run = null;
    this.plan = plan;
  }

  async begin(): Promise<boolean> {
    const plan = await this.options.newPlan();
    if (plan === null) return false;
    this.plan = plan;
    this.session_id = this.last_run = null;
    return true;
  }

  async restart(carried?: string): Promise<void> {
    const { runtime } = this.options;
    if (this.session_id !== null && this.plan.plan === undefined) { // it has its own
      const run_id = await firstRunOf(runtime, this.session_id);
      if (run_id !== null) {
        const { id } = await runtime.runs.sessions.fork(TERMINAL, this.session_id, { before_run: run_id });
        this.session_id = id;
      }
    } else this.session_id = null;
    this.last_run = null;
    this.#carried = carried === undefined ? [] : [carried];
  }

  async #runCommand(command: string): Promise<void> {
    const { view, workspace } = this.options;
    const { signal } = this.#command = new AbortController();
    try {
      this.#carried.push(await runShellCommand(command, { folder: workspace, view, signal }));
    } catch (error) {
      view.error(`The command cannot be run: ${errorMessage(error)}`);
    } finally {
      this.#command = null;
    }
  }

  /** Resolves to a message with the files that it names and what the person has run before. */
  async #promptOf(text: string): Promise<Prompt> {
    const { view, workspace, input } = this.options;
    const files = input.asks ? await attachedFiles(text, { folder: workspace, names_texts: true }) : [];
    if (files.length > 0) view.note(view.style.dim(`with ${formatValue(filesText(files))}`));
    const blocks = [
      ...this.#carried.map((text) => ({ type: "text", text }) as const),
      ...files.map(({ block }) => block),
    ];
    return blocks.length === 0 ? text : [{ type: "text", text }, ...blocks];
  }

  async send(text: string): Promise<void> {
    const { input, runtime, view } = this.options;
    const prompt = await this.#promptOf(text);
    const current = this.#current = { id: null as string | null, stop_key: new StopKey(), is_stopped: false };
    const { base_url, ...plan } = this.plan;
    const is_new = this.session_id === null;
    const request: RunRequest = {
      prompt,
      ...plan,
      ...(this.session_id === null ? { metadata: { name: this.options.session_name ?? nameOf(text) } } : {
        session_id: this.session_id,
      }),
    };
    const ask = input.asks ? this.#questions() : (approval: Approval) => {
      if (!approval.limit) view.warn("No one can be asked here: calls that need an approval are denied");
      return Promise.resolve(null);
    };
    let unlisten = () => {};
    try {
      const handle = await runtime.runs.create(request, TERMINAL, {
        ask,
        endNotStored: () =>
          view.warn("The answer has ended and is not stored yet: the store fails; Ctrl-C leaves"),
        ...(base_url === undefined ? {} : { base_url }),
      });
      current.id = handle.id;
      for (const { message } of handle.current().warnings) view.warn(message);
      if (is_new) this.session_id = handle.session_id;
      this.#carried = [];
      if (current.is_stopped) await runtime.runs.cancel(TERMINAL, handle.id, "immediate");
      unlisten = input.listen((line) => void this.#steer(handle.id, line));
      for await (const entries of runtime.runs.follow(TERMINAL, handle.id, {})) {
        for (const entry of entries) {
          current.stop_key.take(entry);
          view.entry(entry);
        }
      }
      this.last_run = await handle.settled("end");
      view.end(this.last_run);
    } finally {
      unlisten();
      this.#current = null;
    }
  }

  #questions(): Ask {
    const { io, input, view } = this.options;
    return questionsOf({
      io,
      input,
      output: { write: (text) => view.question(text), columns: () => view.columns() },
      style: view.style,
      hold: () => view.hold(),
      leave: () => this.#interrupt(),
      lasting: this.options.allowed,
      displayed: ({ session_id, tool_call_id }) => view.know(session_id, tool_call_id),
    });
  }

  /** Sends a line that was typed while the agent works; one that cannot be read in this run waits. */
  async #steer(run_id: string, line: string): Promise<void> {
    const { runtime, view, workspace } = this.options;
    if (line.trim() === "") return;
    if (isCommand(line) || shellCommandOf(line) !== null) {
      this.#waiting.push(line.trim());
      return view.note(view.style.dim("↪ after this answer"));
    }
    try {
      const files = await attachedFiles(line, { folder: workspace, names_texts: true });
      if (files.length > 0) { // a steering message is text only
        this.#waiting.push(line.trim());
        return view.note(view.style.dim("↪ after this answer, with its files"));
      }
      await runtime.runs.steer(TERMINAL, run_id, line.trim());
    } catch (error) {
      if (!hasCode(error, "run_ended") && !hasCode(error, "not_steerable")) {
        return view.error(errorMessage(error));
      }
      this.#waiting.push(line.trim());
      if (hasCode(error, "not_steerable")) {
        view.note(view.style.dim("↪ after this answer: its loop takes no messages"));
      }
    }
  }

  /** Ctrl-C: stops the answer; a running tool first ends, and pressed again is stopped; then leaves. */
  #interrupt(): void {
    const { io, runtime, view } = this.options;
    if (this.#command) return this.#command.abort();
    const current = this.#current;
    if (current === null || this.#is_leaving) return io.exit(EXIT.interrupted);
    const stop = current.stop_key.press();
    current.is_stopped = true;
    const { style } = view;
    if (stop === null) {
      this.#is_leaving = this.#is_interrupted = true;
      view.note(style.dim("Leaving; press Ctrl-C again to end the process."));
    } else if (stop.mode === "graceful") {
      view.note(style.dim("Stopping after this tool; press Ctrl-C again to stop the tool."));
    }
    if (current.id === null) return; // it is stopped when it exists
    runtime.runs.cancel(TERMINAL, current.id, stop?.mode ?? "immediate").catch((error) =>
      view.error(errorMessage(error))
    );
  }

  #interruptInput(): void {
    if (this.#interrupts++ > 0) this.leave();
    else this.options.view.note(this.options.view.style.dim("Press Ctrl-C again to leave."));
  }
}

/** Resolves to the id of the first run of a session; null: none is stored. */
async function firstRunOf({ runs }: ChatOptions["runtime"], session_id: string): Promise<string | null> {
  let first: string | null = null;
  let cursor: string | undefined;
  do { // the newest first
    const page = await runs.list(TERMINAL, { session_id, ...cursor === undefined ? {} : { cursor } });
    first = page.data.at(-1)?.id ?? first;
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
  return first;
}

function nameOf(text: string): string {
  const line = text.replaceAll(/\s+/g, " ");
  return line.length <= MAX_NAME ? line : `${line.slice(0, MAX_NAME - 1)}…`;
}
