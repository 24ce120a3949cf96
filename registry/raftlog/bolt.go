package raftlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
)

// The layout of a bbolt file (go.etcd.io/bbolt, internal/common): two meta pages
// that take turns, then a tree of pages that are never changed in place. Numbers
// are in the machine's byte order.
const (
	boltMagic   = 0xED0CDAED
	boltVersion = 2

	pageHeader  = 16 // id 8, flags 2, count 2, overflow 4
	elementSize = 16
	metaSize    = 64
	bucketSize  = 16 // root 8, sequence 8
	branchPage  = 0x01
	leafPage    = 0x02
	metaPage    = 0x04
	bucketLeaf  = 0x01
)

// boltFile walks a bbolt file and refuses whatever bbolt itself would stumble
// over: it trusts the file, and panics, reads beyond its end (SIGBUS) or falls
// back to the state before the last write when it is damaged.
type boltFile struct {
	file     *os.File
	pageSize uint64
	pages    uint64 // pages in use or free; those behind were never used
	seen     map[uint64]bool
}

// proveBolt reads every page of the file that is in use and tells what is wrong.
func proveBolt(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	b := &boltFile{file: file, seen: make(map[uint64]bool)}
	root, err := b.metas()
	if err != nil {
		return err
	}
	buckets := 0
	err = b.walk(root, limits{}, func(flags uint32, key, value []byte) error {
		if flags != bucketLeaf || (string(key) != "logs" && string(key) != "conf") {
			return fmt.Errorf("it holds an unknown bucket %q", key)
		}
		buckets++
		return b.bucket(value)
	})
	if err == nil && buckets != 2 {
		return fmt.Errorf("it holds %d of 2 buckets", buckets)
	}
	return err
}

// metas proves both meta pages and returns the root of the newer one. Both must
// be good: with one of them bbolt would go on, and forget the last write if it
// is the older one. A page is written in one piece, so that a crash tears none.
func (b *boltFile) metas() (root uint64, err error) {
	var first [pageHeader + metaSize]byte
	if _, err := b.file.ReadAt(first[:], 0); err != nil {
		return 0, fmt.Errorf("its head cannot be read: %w", err)
	}
	b.pageSize = uint64(binary.NativeEndian.Uint32(first[pageHeader+8:]))
	if b.pageSize < 512 || b.pageSize > 1<<16 || b.pageSize&(b.pageSize-1) != 0 {
		return 0, errors.New("its head is not that of a log")
	}
	var txids [2]uint64
	for i := range txids {
		meta, err := b.meta(uint64(i))
		if err != nil {
			return 0, fmt.Errorf("meta page %d: %w", i, err)
		}
		txids[i] = binary.NativeEndian.Uint64(meta[48:])
		if i == 0 || txids[1] > txids[0] {
			root = binary.NativeEndian.Uint64(meta[16:])
			b.pages = binary.NativeEndian.Uint64(meta[40:])
		}
	}
	if diff := int64(txids[0] - txids[1]); diff != 1 && diff != -1 {
		return 0, fmt.Errorf("its meta pages are of writes %d and %d, which do not follow each other", txids[0], txids[1])
	}
	info, err := b.file.Stat()
	if err != nil {
		return 0, err
	}
	if size := uint64(info.Size()); size/b.pageSize < b.pages {
		return 0, fmt.Errorf("it was cut off: %d bytes of %d are there", size, b.pages*b.pageSize)
	}
	return root, nil
}

func (b *boltFile) meta(id uint64) ([]byte, error) {
	page := make([]byte, pageHeader+metaSize)
	if _, err := b.file.ReadAt(page, int64(id*b.pageSize)); err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	meta := page[pageHeader:]
	sum := fnv.New64a()
	sum.Write(meta[:metaSize-8])
	switch {
	case binary.NativeEndian.Uint64(page) != id || binary.NativeEndian.Uint16(page[8:]) != metaPage:
		return nil, errors.New("it is another page")
	case binary.NativeEndian.Uint64(meta[metaSize-8:]) != sum.Sum64():
		return nil, errors.New("its checksum is wrong")
	case binary.NativeEndian.Uint32(meta) != boltMagic || binary.NativeEndian.Uint32(meta[4:]) != boltVersion:
		return nil, errors.New("it is of an unknown version")
	}
	return meta, nil
}

// page reads a page with those it flows over into. Each is read only once in a
// sound tree.
func (b *boltFile) page(id uint64) ([]byte, error) {
	if id < 2 || id >= b.pages {
		return nil, fmt.Errorf("page %d does not exist", id)
	}
	var header [pageHeader]byte
	if _, err := b.file.ReadAt(header[:], int64(id*b.pageSize)); err != nil {
		return nil, fmt.Errorf("page %d cannot be read: %w", id, err)
	}
	n := uint64(binary.NativeEndian.Uint32(header[12:])) + 1
	if binary.NativeEndian.Uint64(header[:]) != id || n > b.pages-id {
		return nil, fmt.Errorf("page %d is another page", id)
	}
	for i := id; i < id+n; i++ {
		if b.seen[i] {
			return nil, fmt.Errorf("page %d is used twice", i)
		}
		b.seen[i] = true
	}
	page := make([]byte, n*b.pageSize)
	if _, err := b.file.ReadAt(page, int64(id*b.pageSize)); err != nil {
		return nil, fmt.Errorf("page %d cannot be read: %w", id, err)
	}
	return page, nil
}

type onLeaf func(flags uint32, key, value []byte) error

// limits are what the keys below a branch may be: at least from, below to; nil
// is no limit.
type limits struct{ from, to []byte }

func (l limits) hold(key []byte) bool {
	return bytes.Compare(key, l.from) >= 0 && (l.to == nil || bytes.Compare(key, l.to) < 0)
}

// walk visits the leaves below a page in the order of their keys. It ends,
// because no page is visited twice.
func (b *boltFile) walk(id uint64, allowed limits, leaf onLeaf) error {
	page, err := b.page(id)
	if err != nil {
		return err
	}
	if err := b.elements(page, allowed, leaf); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

func (b *boltFile) elements(page []byte, allowed limits, leaf onLeaf) error {
	kind, count := binary.NativeEndian.Uint16(page[8:]), int(binary.NativeEndian.Uint16(page[10:]))
	if kind != branchPage && kind != leafPage || kind == branchPage && count == 0 {
		return errors.New("it is of an unknown kind")
	}
	if pageHeader+count*elementSize > len(page) {
		return errors.New("it holds more than fits")
	}
	all := make([]element, count)
	for i := range all {
		var err error
		if all[i], err = cut(page, pageHeader+i*elementSize, kind); err != nil {
			return err
		}
		if !allowed.hold(all[i].key) || i > 0 && bytes.Compare(all[i-1].key, all[i].key) >= 0 {
			return errors.New("its keys are out of order")
		}
	}
	for i, e := range all {
		if kind == leafPage {
			if err := leaf(e.flags, e.key, e.value); err != nil {
				return err
			}
			continue
		}
		below := limits{e.key, allowed.to}
		if i+1 < count {
			below.to = all[i+1].key
		}
		if err := b.walk(e.child, below, leaf); err != nil {
			return err
		}
	}
	return nil
}

// element is one element of a page; a branch's has a child, a leaf's a value.
type element struct {
	flags      uint32
	key, value []byte
	child      uint64
}

// cut cuts the element at an offset out of its page.
func cut(page []byte, at int, kind uint16) (element, error) {
	var word [4]uint64
	for i := range word {
		word[i] = uint64(binary.NativeEndian.Uint32(page[at+4*i:]))
	}
	var e element
	start, keyLen, valueLen := uint64(at)+word[1], word[2], word[3]
	if kind == branchPage {
		start, keyLen, valueLen = uint64(at)+word[0], word[1], 0
		e.child = binary.NativeEndian.Uint64(page[at+8:])
	} else {
		e.flags = uint32(word[0])
	}
	if keyLen == 0 || start+keyLen+valueLen > uint64(len(page)) {
		return e, errors.New("an element lies outside of it")
	}
	e.key, e.value = page[start:start+keyLen], page[start+keyLen:start+keyLen+valueLen]
	return e, nil
}

// bucket walks a bucket, which is a tree of its own or lies in its parent.
func (b *boltFile) bucket(value []byte) error {
	if len(value) < bucketSize {
		return errors.New("a bucket is cut off")
	}
	plain := func(flags uint32, _, _ []byte) error {
		if flags != 0 {
			return errors.New("an element is of an unknown kind")
		}
		return nil
	}
	if root := binary.NativeEndian.Uint64(value); root != 0 {
		return b.walk(root, limits{}, plain)
	}
	inline := value[bucketSize:]
	if len(inline) < pageHeader || binary.NativeEndian.Uint16(inline[8:]) != leafPage {
		return errors.New("a bucket is cut off")
	}
	return b.elements(inline, limits{}, plain)
}
