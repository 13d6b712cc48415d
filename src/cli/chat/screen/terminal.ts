/**
 * The terminal of the screen. The library draws everything again, and erases the scrollback with it, when the
 * size changes or a line above the window changes. This one draws the window only: what the shell has written
 * before, and the conversation, stay.
 */
import process from "node:process";
import {
  ProcessTerminal,
  setCapabilities,
  type Terminal,
  truncateToWidth,
  TuiMainScreen,
  visibleWidth,
} from "@earendil-works/pi-tui";

const BEGIN = "\x1b[?2026h", END = "\x1b[?2026l";
const ERASE_SCROLLBACK = "\x1b[3J";
/** What the library writes before it draws everything. */
const ERASE = `\x1b[2J\x1b[H${ERASE_SCROLLBACK}`;

/** Milliseconds of rest after which a window of another size is drawn: its edge is dragged in many steps. */
const RESIZE_MS = 60;
/** A narrower window would have no place for a wide character beside the borders of a table. */
const LEAST_COLUMNS = 8;

/** A terminal whose scrollback is kept. */
class KeptScrollback implements Terminal {
  /** What is drawn; set right after it is made with this terminal. */
  screen: TuiMainScreen | null = null;
  readonly #inner: Terminal;
  /** A drawing of everything that has not arrived whole. */
  #whole: string | null = null;

  constructor(inner: Terminal) {
    this.#inner = inner;
  }

  get columns(): number {
    return Math.max(LEAST_COLUMNS, this.#inner.columns);
  }
  get rows(): number {
    return this.#inner.rows;
  }
  get kittyProtocolActive(): boolean {
    return this.#inner.kittyProtocolActive;
  }

  start(onInput: (data: string) => void, onResize: () => void): void {
    let timer: ReturnType<typeof setTimeout> | undefined;
    this.#inner.start(onInput, () => {
      clearTimeout(timer);
      timer = setTimeout(onResize, RESIZE_MS);
    });
  }

  write(data: string): void {
    if (this.#whole === null && !data.startsWith(BEGIN + ERASE)) {
      return this.#inner.write(data.replaceAll(ERASE_SCROLLBACK, ""));
    }
    this.#whole = (this.#whole ?? "") + data;
    if (!this.#whole.endsWith(END)) return;
    const lines = this.#whole.slice(BEGIN.length + ERASE.length, -END.length).split("\r\n");
    this.#whole = null;
    const { move, count } = this.#window(lines.length);
    // each line is erased by itself: some terminals keep a copy of a window that is erased whole
    const shown = lines.slice(-count).map((line) => `\x1b[2K${line}`).join("\r\n");
    const rest = lines.length < this.rows ? "\x1b[J" : "";
    this.#inner.write(BEGIN + move + shown + rest + END);
  }

  /**
   * Returns the move to the first line that is drawn, and how many lines are, the last ones: those that are
   * new move as many lines of the window to the scrollback.
   */
  #window(count: number): { move: string; count: number } {
    const { previousLines, previousWidth, hardwareCursorRow } = this.screen!.captureRenderState(); // set at first
    const { length } = previousLines;
    if (length === 0 || length >= this.rows) {
      const added = previousWidth === this.columns && length > 0 ? Math.max(0, count - length) : 0;
      return { move: "\x1b[H", count: this.rows + added };
    }
    // all of it is in the window, below what the shell has written, and wrapped to the new width
    const up = previousLines.slice(0, hardwareCursorRow)
      .reduce((sum, line) => sum + Math.max(1, Math.ceil(visibleWidth(line) / this.columns)), 0);
    return { move: up === 0 ? "\r" : `\x1b[${up}A\r`, count };
  }

  stop(): void {
    this.#inner.stop();
  }
  restoreOnExit(before: string, after: string): void {
    this.#inner.restoreOnExit?.(before, after);
  }
  drainInput(max_ms?: number, idle_ms?: number): Promise<void> {
    return this.#inner.drainInput(max_ms, idle_ms);
  }
  moveBy(lines: number): void {
    this.#inner.moveBy(lines);
  }
  hideCursor(): void {
    this.#inner.hideCursor();
  }
  showCursor(): void {
    this.#inner.showCursor();
  }
  clearLine(): void {
    this.#inner.clearLine();
  }
  clearFromCursor(): void {
    this.#inner.clearFromCursor();
  }
  clearScreen(): void {} // it would erase what the shell has written
  setTitle(title: string): void {
    this.#inner.setTitle(title);
  }
  setProgress(active: boolean): void {
    this.#inner.setProgress(active);
  }
  setProgramStatus(status: Parameters<Terminal["setProgramStatus"]>[0]): void {
    this.#inner.setProgramStatus(status);
  }
}

/** C1 controls, and what changes the direction of text: whatever a part lets through, a line has none. */
const DANGEROUS = /[\x80-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** The library ends the process for a line that is too wide. */
class Screen extends TuiMainScreen {
  #last: { lines: readonly string[]; width: number; fitted: readonly string[] } | null = null;

  override render(width: number): readonly string[] {
    const lines = super.render(width);
    if (this.#last?.lines === lines && this.#last.width === width) return this.#last.fitted;
    const fitted = lines.map((line) => {
      const printable = line.replace(DANGEROUS, "");
      return visibleWidth(printable) > width ? truncateToWidth(printable, width) : printable;
    });
    this.#last = { lines, width, fitted };
    return fitted;
  }
}

/** Returns a screen on a terminal. Default: that of the process. */
export function openScreen(terminal: Terminal = new ProcessTerminal()): TuiMainScreen {
  // otherwise the library starts `tmux` to find out; links could hide where they lead
  setCapabilities({ images: null, trueColor: false, hyperlinks: false });
  const kept = new KeptScrollback(terminal);
  return kept.screen = new Screen(kept, true);
}

/** Calls `gone` when the terminal of this process is gone. Returns a function that ends that. */
export function onTerminalGone(gone: () => void): () => void {
  process.stdin.on("end", gone);
  for (const stream of [process.stdin, process.stdout]) stream.on("error", gone);
  if (Deno.build.os !== "windows") Deno.addSignalListener("SIGHUP", gone);
  return () => {
    process.stdin.off("end", gone);
    for (const stream of [process.stdin, process.stdout]) stream.off("error", gone);
    if (Deno.build.os !== "windows") Deno.removeSignalListener("SIGHUP", gone);
  };
}
