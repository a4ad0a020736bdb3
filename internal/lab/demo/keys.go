package demo

// verb is what a key asks for.
type verb int

const (
	doNothing verb = iota
	doPower        // cut the power of a board, or switch it on
	doCable        // pull the cable of a board, or put it back
	doResign
	doStop // stop the leader's daemon, or start the one that was stopped
	doQuit
)

// command is a verb, and the board that it is about.
type command struct {
	verb  verb
	board int
}

// shifted are the digits 1 to 9 and 0 with shift on a US keyboard.
const shifted = "!@#$%^&*()"

// keys turns what a terminal sends into commands. Its zero value is ready. It keeps
// what a sequence needs between two reads.
type keys struct {
	which  bool // a cable was asked for, and the board is awaited
	escape escape
}

// escape is how far an escape sequence has come (ECMA-48, section 5.4). Arrow
// and function keys send them, and no letter in one is a command.
type escape int

const (
	outside escape = iota
	begun          // ESC has come
	inside         // ESC [ has, or ESC O
)

// parse takes in what was read, and returns the commands in it.
func (k *keys) parse(input []byte) (commands []command) {
	for _, b := range input {
		if c := k.key(b); c.verb != doNothing {
			commands = append(commands, c)
		}
	}
	return commands
}

func (k *keys) key(b byte) command {
	switch k.escape {
	case begun:
		k.escape = outside
		if b == '[' || b == 'O' {
			k.escape = inside
			return command{}
		}
	case inside:
		if b >= 0x40 && b <= 0x7e { // the final byte
			k.escape = outside
		}
		return command{}
	}
	which := k.which
	k.which = false
	switch {
	case b == 0x1b:
		k.escape = begun
	case b >= '0' && b <= '9' && which:
		return command{doCable, digit(b)}
	case b >= '0' && b <= '9':
		return command{doPower, digit(b)}
	case b == 'c' || b == 'C':
		k.which = true
	case b == 'r' || b == 'R':
		return command{verb: doResign}
	case b == 's' || b == 'S':
		return command{verb: doStop}
	case b == 'q' || b == 'Q', b == 0x03, b == 0x04: // Ctrl-C and Ctrl-D, which raw mode hands to us
		return command{verb: doQuit}
	default:
		for i := range len(shifted) {
			if b == shifted[i] {
				return command{doCable, i + 1}
			}
		}
	}
	return command{}
}

// digit is the board that a digit means; 0 is the tenth.
func digit(b byte) int {
	if b == '0' {
		return 10
	}
	return int(b - '0')
}
