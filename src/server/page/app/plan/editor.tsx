/**
 * The editor of the plan: a text area whose lines wrap and whose text is transparent. The same text lies behind
 * it, line by line, with colours, numbers and marks. So undo, input methods, screen readers and phones have the
 * browser's own box.
 */
import { Component } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import type { AppState } from "../state/app_state.ts";
import type { Finding } from "../state/plan_draft.ts";
import { visible } from "../ui/text.tsx";
import { helpAt, type Suggestions, suggestionsAt } from "./assist.ts";
import { type Edit, hiddenIn, indent, lineAt, type LineMark, marksOf, newLine, offsetOf } from "./editing.ts";
import { Floating, HelpText, isInView, offsetAt, SuggestionList } from "./floating.tsx";
import { coloured, type ColouredLine, readSyntax, type Syntax } from "./syntax.ts";

const ID = "plan-text";

/** Puts the cursor at a line and column of the plan. */
export function goTo(line: number, column?: number): void {
  const box = document.getElementById(ID) as HTMLTextAreaElement;
  const at = offsetOf(box.value, line, column);
  box.setSelectionRange(at, at);
  box.focus(); // shows the findings of the line of the cursor
  const scroll = box.closest(".scroll")!;
  const place = scroll.querySelectorAll<HTMLElement>(".lines > div")[line - 1]?.offsetTop ?? 0;
  scroll.scrollTop = Math.max(0, place - 3 * LINE_PX);
}

/** Height of a line that does not wrap; the style sheet has the same. */
const LINE_PX = 18;

/** The list at the cursor: what may be written, and which of it Enter takes. */
interface OpenList extends Suggestions {
  readonly active: number;
}

/**
 * The editor. Tab leaves it; Ctrl and a bracket indents, and Enter continues the indentation. Suggestions open
 * while a word is typed, or by Ctrl and space.
 */
export function Editor({ state }: { state: AppState }) {
  const { plan } = state;
  const box = useRef<HTMLTextAreaElement>(null);
  const [cursor, setCursor] = useState<number | null>(null);
  const [marked, setMarked] = useState(0);
  const [list, setList] = useState<OpenList | "nothing" | null>(null);
  const [pointed, setPointed] = useState<number | null>(null);
  const text = plan.text.value;
  const schema = plan.schema.value;
  const open = list === "nothing" ? null : list;
  const chosen = open?.items[open.active];
  const line = open ? 0 : marked || (cursor === null ? 0 : lineAt(text, cursor)); // the list is there, too
  const findings = plan.findings.value;
  const syntax = useMemo(() => readSyntax(text), [text]);
  const lines = useMemo(
    () => <Lines text={text} syntax={syntax} findings={findings} line={line} onMark={setMarked} />,
    [text, findings, line],
  );
  const help = (at: number | null) => at === null || schema === null ? null : helpAt(syntax, at, schema);
  const at_cursor = useMemo(() => help(cursor), [text, schema, cursor]);
  const at_pointer = useMemo(() => help(pointed), [text, schema, pointed]);

  const load = () => plan.loadSchema().catch(() => {}); // a plan can be written without help, too
  const follow = () => setCursor(box.current!.selectionStart);
  const suggest = (is_typing: boolean) => {
    const { value, selectionStart } = box.current!;
    const found = plan.schema.value && suggestionsAt(value, selectionStart, plan.schema.value, is_typing);
    setList(found ? { ...found, active: 0 } : is_typing ? null : "nothing");
  };
  const take = (index: number) => {
    const { from, to, items } = open!;
    const { insert } = items[index]!;
    const end = from + insert.length;
    apply(box.current!, { from, to, text: insert, selection: [end, end] });
    if (/\s$/.test(insert)) suggest(true); // its value is next
    else setList(null);
    follow();
  };
  const onInput = ({ currentTarget: { value, selectionStart } }: { currentTarget: HTMLTextAreaElement }) => {
    const grows = value.length > text.length;
    plan.edit(value);
    follow();
    setPointed(null);
    if (!/[\w-]$/.test(value.slice(0, selectionStart)) || !(grows || open)) setList(null);
    else if (plan.schema.value) suggest(true);
    else {
      load().then(() => {
        const { current } = box;
        if (current === document.activeElement && current?.value === value) suggest(true);
      });
    }
  };
  /** Does what a key is for while the list is open; returns whether it is for the list. */
  const onListKey = ({ key, isComposing }: KeyboardEvent): boolean => {
    if (!open || isComposing) return false;
    const { items: { length }, active } = open;
    const step = { ArrowDown: 1, ArrowUp: -1 }[key];
    if (step !== undefined) setList({ ...open, active: (active + step + length) % length });
    else if (key === "Enter" || key === "Tab") take(active);
    else return false;
    return true;
  };
  const onKeyDown = (event: KeyboardEvent & { currentTarget: HTMLTextAreaElement }) => {
    const { currentTarget: box, code, key, ctrlKey, metaKey, shiftKey } = event;
    const { value, selectionStart: start, selectionEnd: end } = box;
    const takes = !ctrlKey && !metaKey && !shiftKey && onListKey(event);
    if (takes) event.preventDefault();
    else if (key === "Escape" && (list !== null || at_pointer !== null)) {
      event.stopPropagation(); // it would leave the editor
      setList(null);
      setPointed(null);
    } else if (key === " " && ctrlKey) {
      event.preventDefault();
      load().then(() => suggest(false));
    } else if (key === "Enter" && (ctrlKey || metaKey)) {
      event.preventDefault();
      if (state.what_if.value) state.runWhatIf();
      else state.run();
    } else if (key === "Enter" && !shiftKey && !event.isComposing) {
      event.preventDefault();
      apply(box, newLine(value, start, end));
    } else if (ctrlKey && (code === "BracketRight" || code === "BracketLeft")) {
      event.preventDefault();
      const edit = indent(value, start, end, code === "BracketRight");
      if (edit) apply(box, edit);
    } else if (/^(Arrow|Home|End|Page)/.test(key)) setList(null);
  };
  const place = (offset: number) => {
    const number = lineAt(text, offset);
    return { line: number, column: offset - offsetOf(text, number) };
  };
  /** Moves the list along, as when the browser follows the cursor. */
  const onScroll = ({ currentTarget }: { currentTarget: Element }) => {
    if (!open) return;
    const { line, column } = place(open.from);
    setList(isInView(currentTarget, line, column) ? { ...open } : null);
  };
  return (
    <>
      <div class="editor scroll" onScroll={onScroll}>
        {lines}
        <textarea
          id={ID}
          ref={box}
          aria-label="Plan, as YAML or JSON"
          aria-describedby="plan-keys plan-help"
          aria-invalid={plan.phase.value === "invalid"}
          aria-autocomplete="list"
          aria-haspopup="listbox"
          aria-controls={open ? "plan-suggestions" : undefined}
          aria-activedescendant={open ? `plan-suggestion-${open.active}` : undefined}
          spellcheck={false}
          autocapitalize="off"
          autocomplete="off"
          value={text}
          onInput={onInput}
          onKeyDown={onKeyDown}
          onKeyUp={follow}
          onClick={() => {
            follow();
            setList(null);
          }}
          onFocus={() => {
            load();
            follow();
          }}
          onBlur={() => {
            setCursor(null);
            setList(null);
          }}
          onPointerEnter={load}
          onMouseMove={({ clientX, clientY }) => setPointed(offsetAt(text, clientX, clientY))}
          onMouseLeave={() => setPointed(null)}
        />
        <div id="plan-keys" class="hidden-text">
          Control and space offers what may be written, arrows and Enter take it. Control and right bracket
          indents, Control and left bracket takes it back, Control and Enter runs.
        </div>
      </div>
      {open && (
        <Floating {...place(open.from)}>
          <SuggestionList items={open.items} active={open.active} onTake={take} />
        </Floating>
      )}
      {!open && at_pointer && (
        <Floating {...place(pointed!)} key={pointed}>
          <div class="tip" role="tooltip">
            <HelpText help={at_pointer} />
          </div>
        </Floating>
      )}
      <p id="plan-help" class="plan-help">
        {chosen
          ? <HelpText help={{ name: chosen.label, type: "", description: chosen.description }} />
          : list === "nothing"
          ? <span class="muted">Nothing is known that could be written here.</span>
          : at_cursor
          ? <HelpText help={at_cursor} />
          : (
            <span class="muted">
              A key at the cursor is explained here.{" "}
              <span class="with-keys">
                <kbd>Ctrl</kbd> <kbd>Space</kbd> offers what may be written.
              </span>
            </span>
          )}
      </p>
      <div role="status" class="hidden-text">
        {open && `${open.items.length} ${open.items.length === 1 ? "suggestion" : "suggestions"}`}
        {list === "nothing" && "Nothing is known that could be written here."}
      </div>
    </>
  );
}

/** The lines behind the text area, in colours, with their numbers and marks. */
function Lines({ text, syntax, findings, line, onMark }: {
  text: string;
  syntax: Syntax;
  findings: readonly Finding[];
  /** The line whose findings are shown; 0 for none. */
  line: number;
  onMark: (line: number) => void;
}) {
  const marks = new Map(marksOf([...findings, ...hiddenIn(text)]).map((mark) => [mark.line, mark]));
  return (
    <div class="lines" aria-hidden="true">
      {coloured(text, syntax.tokens).map((parts, at) => {
        const mark = marks.get(at + 1);
        return <Line parts={parts} mark={mark} open={mark?.line === line} onMark={onMark} key={at} />;
      })}
    </div>
  );
}

interface LineProps {
  parts: ColouredLine;
  mark: LineMark | undefined;
  /** Whether its findings are shown. */
  open: boolean;
  onMark: (line: number) => void;
}

/** One line; drawn again only if it has changed, because a plan may have thousands. */
class Line extends Component<LineProps> {
  override shouldComponentUpdate({ parts, mark, open }: LineProps): boolean {
    const { props } = this;
    return open !== props.open || mark?.text !== props.mark?.text || mark?.level !== props.mark?.level ||
      mark?.line !== props.mark?.line || parts.length !== props.parts.length ||
      parts.some(([kind, part], index) => kind !== props.parts[index]![0] || part !== props.parts[index]![1]);
  }

  override render({ parts, mark, open, onMark }: LineProps) {
    return (
      <div class={mark?.level}>
        {mark && (
          <span
            class="mark"
            title={mark.text}
            onMouseEnter={() => onMark(mark.line)}
            onMouseLeave={() => onMark(0)}
          >
            {mark.level === "error" ? "✗" : "!"}
          </span>
        )}
        {parts.length === 0 && <span class="copy" data-text=" " />}
        {parts.map(([kind, part], index) => (
          <span class={kind ? `copy ${kind}` : "copy"} data-text={part} key={index} />
        ))}
        {mark && open && <div class={`at-line ${mark.level}`}>{visible(mark.text)}</div>}
      </div>
    );
  }
}

/** Edits the text in a way that the browser can undo. */
function apply(box: HTMLTextAreaElement, { from, to, text, selection }: Edit): void {
  box.setSelectionRange(from, to);
  document.execCommand("insertText", false, text);
  box.setSelectionRange(...selection);
}
