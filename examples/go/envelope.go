package relay

import (
	"encoding/binary"
	"fmt"
)

// Poison is a record that cannot be read.
type Poison struct{ text string }

func (p Poison) Error() string { return p.text }

// WithHop returns an envelope with the position of its record at the end of its chain.
//
// A repeated field of protobuf may be continued behind all others.
func WithHop(topic string, partition int32, offset int64, key, value []byte) ([]byte, error) {
	at := fmt.Sprintf("%s-%d@%d", topic, partition, offset)
	if key == nil || value == nil {
		return nil, Poison{at + " has no key or no value"}
	}
	if !isEnvelope(value) {
		return nil, Poison{at + " holds no envelope"}
	}
	hop := append([]byte{1<<3 | 2}, field([]byte(topic))...)
	hop = binary.AppendUvarint(append(hop, 2<<3), uint64(partition))
	hop = binary.AppendUvarint(append(hop, 3<<3), uint64(offset))
	longer := append([]byte(nil), value...)
	return append(append(longer, 3<<3|2), field(hop)...), nil
}

// field returns bytes behind their length.
func field(content []byte) []byte {
	return append(binary.AppendUvarint(nil, uint64(len(content))), content...)
}

// isEnvelope tells whether bytes are whole fields 1 to 4, each of its own wire type.
func isEnvelope(value []byte) bool {
	kinds := map[uint64]uint64{1: 2, 2: 0, 3: 2, 4: 2}
	for len(value) > 0 {
		tag, size := binary.Uvarint(value)
		kind, known := kinds[tag>>3]
		if size <= 0 || !known || kind != tag&7 {
			return false
		}
		value = value[size:]
		number, size := binary.Uvarint(value)
		if size <= 0 {
			return false
		}
		value = value[size:]
		if kind == 2 {
			if number > uint64(len(value)) {
				return false
			}
			value = value[number:]
		}
	}
	return true
}
